"""Secondary suppression: the cells that must be blank as well, so that no difference gives a blank one away."""
