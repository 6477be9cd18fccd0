"""The ground floor: tensors, their record, operations, marks, pytrees, state and errors."""
