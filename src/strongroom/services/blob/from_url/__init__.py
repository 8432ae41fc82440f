"""Operations whose body is read from a URL: the From URL family."""
