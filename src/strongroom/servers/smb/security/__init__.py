"""Who is calling, and what protects their messages: authentication, signing, encryption."""
