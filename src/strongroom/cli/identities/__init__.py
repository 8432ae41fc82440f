"""Where commands find accounts and roles: in files, or in the database of `serve --store`."""
