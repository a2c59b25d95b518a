//! Orders response bytes onto a limited link.
