"""Uses of stopping gradients, each a program by itself on real data; `stopgrad demo` runs them."""
