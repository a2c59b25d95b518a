//! Relative paths of a file mean places beside that file, wherever the server was started.

use super::Config;
use std::path::{Path, PathBuf};
use toml::Spanned;

impl Config {
    /// Makes the paths that stand in the file relative to `folder`, the file's own; those of flags
    /// stay relative to where it was started.
    pub fn relative_to(&mut self, folder: &Path) {
        for path in self.paths() {
            let joined = folder.join(path.get_ref());
            *path.get_mut() = joined;
        }
        self.log.relative_to(folder);
        let guards = self.site.iter_mut().flat_map(|site| &mut site.auth);
        guards.for_each(|guard| guard.relative_to(folder));
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut Spanned<PathBuf>> {
        let roots = self
            .root
            .iter_mut()
            .chain(self.site.iter_mut().flat_map(|site| {
                let locations = site.location.iter_mut();
                (site.root.iter_mut())
                    .chain(locations.filter_map(|location| location.root.as_mut()))
            }));
        let certificates = self.tls.iter_mut().flat_map(|tls| {
            [&mut tls.certificate, &mut tls.key]
                .into_iter()
                .chain(&mut tls.client_ca)
        });
        let of_upstreams = self.upstream.iter_mut().flat_map(|upstream| {
            let scripts = upstream.fastcgi.as_mut().map(|scripts| &mut scripts.root);
            upstream.ca.as_mut().into_iter().chain(scripts)
        });
        roots.chain(certificates).chain(of_upstreams)
    }
}
