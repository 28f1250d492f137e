"""Files that other programs for aggregate tables read and write; all of them are bounded and hostile until read."""
