"""What a foreign certificate states about how a release was made, held to what can be said."""
