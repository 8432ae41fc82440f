"""etcd as a store for coordination, over its JSON gateway."""
