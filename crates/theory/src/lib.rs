//! What should happen: response times by formula and by numerical solution.
//!
//! Pure: no clock, no files, no chance. Work is in the unit of the sizes, a server does one unit of
//! it in one unit of time, so that times are in the unit of the sizes as well.

pub mod closed;
pub mod error;
pub mod kinds;
pub mod little;
pub mod mg1;
pub mod mmk;
pub mod mpl;
pub mod overload;
mod quadrature;
pub mod tail;

pub use error::TheoryError;
