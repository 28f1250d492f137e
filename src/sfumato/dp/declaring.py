"""What is said where a private answer would rest on what was learnt from the rows: the cure, and what it means to declare."""

#: In a sentence of its own, behind what is wrong.
CURE = (
    'Check what the schema says of it and set source = "declared" there (source = "data" says that it was learnt from the rows). '
    "Declaring means: you know what may occur from elsewhere than these rows, and everybody may know it"
)
