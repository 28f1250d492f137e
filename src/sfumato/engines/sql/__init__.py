"""What the SQL engines share: plans and values written as SQL, relations that answer them."""
