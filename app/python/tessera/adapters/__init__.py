"""What other packages ask of a reader, a module for each package. None is imported until it is asked for."""
