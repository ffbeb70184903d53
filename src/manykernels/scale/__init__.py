"""Past kernel matrices: the same mathematics on explicit features, in passes over blocks of rows."""
