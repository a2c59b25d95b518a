//! `rewrite` of a server.

use super::returns::{Place as At, Rewrite, read_rewrite};
use super::site::{Body, Place};
use super::translate::Builder;

impl Builder<'_, '_> {
    /// `rewrite` of the server, which comes before all locations, and of `location /`.
    pub fn redirects_of_server(&mut self) {
        let of_server = self.server.own();
        let rest = self.all.iter().find(|own| own.is_rest());
        let of_rest = rest
            .map(|own| own.scope.own())
            .filter(|own| !std::ptr::eq(*own, of_server));
        let rest = of_rest.unwrap_or_default();
        for (own, is_server) in (of_server.iter().map(|own| (own, true)))
            .chain(rest.iter().map(|own| (own, false)))
            .filter(|(own, _)| own.name == "rewrite")
        {
            let at = At {
                scheme: self.actions.facts.scheme,
                name: self.actions.name,
                paths: &[],
            };
            match read_rewrite(own, at) {
                Ok(Rewrite::Redirect(redirects)) => {
                    self.actions.remarks_on_redirect(own);
                    for redirect in redirects {
                        if is_server && redirect.from != "/*" {
                            self.site.places.push(Place {
                                paths: vec![redirect.from.clone()],
                                ignores_case: false,
                                body: Body {
                                    redirects: vec![redirect],
                                    ..self.site.body.clone()
                                }
                                .without_files(),
                            });
                        } else if !is_server {
                            self.site.body.redirects.push(redirect);
                        } else {
                            self.site.places.clear();
                            self.site.places.push(Place {
                                paths: vec!["/*".into()],
                                ignores_case: false,
                                body: Body {
                                    redirects: vec![redirect],
                                    ..self.site.body.clone()
                                }
                                .without_files(),
                            });
                        }
                    }
                }
                Ok(Rewrite::Strip(_)) => {
                    self.actions
                        .leave_out(own, "paths are not rewritten within Sooner");
                }
                Err(why) => self.actions.leave_out(own, &why),
            }
        }
    }
}
