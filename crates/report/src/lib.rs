//! Tables, plots, HTML.
