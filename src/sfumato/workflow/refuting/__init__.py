"""Testing the claim of a function that somebody else wrote, in a child process."""
