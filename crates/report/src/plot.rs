//! Charts of lines and bars as SVG text, made here so that a report needs no network and no script.
//!
//! [`Chart`] says what is shown; [`Frame`] how large. Colours are CSS classes, so that one picture
//! serves light and dark pages. Every chart is drawn once wide and once narrow and the page shows
//! the one that fits, because a scaled picture has unreadable text on a phone.

mod axis;
mod bars;
mod chart;
mod frame;
mod line;
mod readout;
mod scale;

pub use axis::{Axis, Ticks};
pub use chart::Chart;
pub use frame::Frame;
pub use line::{Line, Path};
pub use readout::{STRIP_WIDTH_MIN, Wording};
pub use scale::{Kind, Scale};
