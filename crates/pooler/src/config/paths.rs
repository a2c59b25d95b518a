//! Relative paths of a file mean places beside that file, wherever the gate was started.

use super::Config;
use sooner_config::Spanned;
use std::path::{Path, PathBuf};

impl Config {
    /// Makes the paths that stand in the file relative to `folder`, the file's own.
    pub fn relative_to(&mut self, folder: &Path) {
        for path in self.paths() {
            *path = folder.join(&*path);
        }
        for place in &mut self.listen {
            if place.get_ref().starts_with('.') {
                let joined = folder.join(place.get_ref());
                *place = Spanned::new(place.span(), joined.display().to_string());
            }
        }
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let certificates = self.tls.iter_mut().flat_map(|tls| {
            [&mut tls.certificate, &mut tls.key]
                .into_iter()
                .chain(&mut tls.client_ca)
        });
        let servers = self.database.iter_mut().flat_map(|table| {
            let server = table.server.get_mut();
            let own = server
                .certificate
                .iter_mut()
                .flat_map(|(certificate, key)| [certificate, key]);
            let lock_map = table.lock_map.iter_mut();
            let priorities = table.priorities.as_mut().map(Spanned::get_mut);
            let told = lock_map.chain(priorities);
            server.authorities.iter_mut().chain(own).chain(told)
        });
        self.users
            .iter_mut()
            .chain(&mut self.priorities)
            .chain(certificates)
            .map(Spanned::get_mut)
            .chain(servers)
    }
}
