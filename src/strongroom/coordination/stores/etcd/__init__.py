"""etcd as a store of coordination, over its JSON gateway."""
