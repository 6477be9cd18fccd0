°
ôÈ
?
Mul
x"T
y"T
z"T"
Ttype:
2	ê
C
Placeholder
output"dtype"
dtypetype"
shapeshape:
2
StopGradient

input"T
output"T"	
Ttype
-
Tanh
x"T
y"T"
Ttype:

2"serve*2.21.02v2.21.0-rc1-5-ga481b10260d8î
R
xPlaceholder*
_output_shapes

:*
dtype0*
shape
:
8
TanhTanhx*
T0*
_output_shapes

:
B
cutStopGradientTanh*
T0*
_output_shapes

:
;
mulMulcutx*
T0*
_output_shapes

:"™*l
serving_defaultY

features
x:0
score
mul:0tensorflow/serving/predict