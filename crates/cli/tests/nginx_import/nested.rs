//! Requests for locations in locations, and for those beside them.

use super::requests::{Case, get};

const FIRM: &str = "firm.example.org";
const BESIDE: &str = "beside.example.org";
const BELOW: &str = "below.example.org";
const LEVELS: &str = "levels.example.org";

/// Of locations in locations.
pub const NESTED_CASES: &[Case] = &[
    get("nested", FIRM, "/backup/db.sql"),
    get("nested", FIRM, "/backup/none.txt"),
    get("nested", FIRM, "/db.bak"),
    get("nested", FIRM, "/uploads/x.php"),
    get("nested", FIRM, "/uploads/x.png"),
    get("nested", FIRM, "/blog/post.php"),
    get("nested", FIRM, "/about.html"),
    get("nested", FIRM, "/data/x.txt"),
    get("nested", BESIDE, "/about.html"),
    get("nested", BESIDE, "/css/site.css"),
    get("nested", BESIDE, "/staff/note.txt"),
    get("nested", BESIDE, "/staff/a.css"),
    get("nested", BESIDE, "/staff/"),
    get("nested", BESIDE, "/dir/index.html"),
    get("nested", BELOW, "/staff/note.txt"),
    get("nested", BELOW, "/staff/a.css"),
    get("nested", BELOW, "/staff/public/p.txt"),
    get("nested", BELOW, "/about.html"),
    get("nested", BELOW, "/static/app.js"),
    get("nested", LEVELS, "/staff/note.txt"),
    get("nested", LEVELS, "/staff/public/p.txt"),
    get("nested", LEVELS, "/staff/p.txt"),
    get("nested", LEVELS, "/data/x.txt"),
    get("nested", LEVELS, "/staff/a.css"),
];
