"""Each operation declared once; the routes and the codec that read the declarations."""
