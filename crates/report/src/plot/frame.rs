//! The size of a picture and the place of its plot inside.

/// Height of a line of labels.
pub const LABEL_HEIGHT: f64 = 15.0;

/// A picture's measures in CSS pixels (at scale 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Whole width.
    pub width: f64,
    /// Whole height.
    pub height: f64,
    /// Room for the labels of the vertical axis.
    pub left: f64,
    /// Room on the right, for half of the last label.
    pub right: f64,
    /// Room above the plot.
    pub top: f64,
    /// Room for the labels and the title of the horizontal axis.
    pub bottom: f64,
    /// Largest number of labels along the horizontal axis.
    pub x_labels_max: usize,
    /// The CSS class that decides where the picture is shown.
    pub class: &'static str,
}

impl Frame {
    /// For screens and paper; labels of the horizontal axis have `label_rows` lines.
    pub fn wide(height: f64, label_rows: usize) -> Frame {
        Frame {
            width: 860.0,
            height,
            left: 64.0,
            right: 20.0,
            top: 14.0,
            bottom: bottom(label_rows),
            x_labels_max: 11,
            class: "wide",
        }
    }

    /// For phones; labels of the horizontal axis have `label_rows` lines.
    pub fn narrow(height: f64, label_rows: usize) -> Frame {
        Frame {
            width: 380.0,
            height,
            left: 54.0,
            right: 18.0,
            top: 12.0,
            bottom: bottom(label_rows),
            x_labels_max: 6,
            class: "narrow",
        }
    }

    /// Left and right border of the plot.
    pub fn x_range(&self) -> (f64, f64) {
        (self.left, self.width - self.right)
    }

    /// Lower and upper border of the plot: positions fall as values rise.
    pub fn y_range(&self) -> (f64, f64) {
        (self.height - self.bottom, self.top)
    }
}

/// The labels, a gap, the title.
fn bottom(label_rows: usize) -> f64 {
    LABEL_HEIGHT * label_rows as f64 + 30.0
}
