"""Methods that change baskets until nothing on the owner's list is derived from them."""
