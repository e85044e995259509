"""How exact results are: worst errors of functions and sums against stated bounds."""
