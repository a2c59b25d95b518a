//! What a server does before it looks at its locations, in the order in which it stands there:
//! `rewrite`, and `if` with `return` before a `return` of all.

use super::access;
use super::conditions::Condition;
use super::path_conditions;
use super::returns::{Place as At, Redirect, Return, Rewrite, read_return, read_rewrite};
use super::site::{Body, Place, refusing};
use super::translate::Builder;
use super::tree::Directive;

const NOT_WITHIN: &str = "paths are not rewritten within Sooner";
const NO_CONDITIONS: &str = "Sooner has no conditions";
const GUARDED: &str = "these paths get 403, as an if before it may keep clients out";
const FORBIDDEN: u16 = 403;

impl<'a> Builder<'_, 'a> {
    /// `rewrite` of the server, which comes before all locations, and of `location /`.
    pub fn redirects_of_server(&mut self) {
        let of_server = self.server.own();
        for own in of_server.iter().filter(|own| own.name == "rewrite") {
            for redirect in self.redirects_of(own) {
                let place = self.place_of_redirect(redirect);
                self.site.places.push(place);
            }
        }
        let rest = self.all.iter().find(|own| own.is_rest());
        let of_rest = rest
            .map(|own| own.scope.own())
            .filter(|own| !std::ptr::eq(*own, of_server));
        let rest = of_rest.unwrap_or_default();
        for own in rest.iter().filter(|own| own.name == "rewrite") {
            let redirects = self.redirects_of(own);
            self.site.body.redirects.extend(redirects);
        }
    }

    /// Puts what stands in the server before its `return` before the answer to all.
    pub fn before_return(&mut self, before: &'a [Directive]) {
        let mut places = Vec::new();
        let mut is_guarded = false;
        for own in before {
            match own.name.as_str() {
                "rewrite" => {
                    let redirects = self.redirects_of(own).into_iter();
                    places.extend(redirects.map(|own| self.place_of_redirect(own)));
                }
                "if" => match self.place_of_condition(own) {
                    Some(place) if is_guarded => places.push(self.guarded(own, place)),
                    Some(place) => places.push(place),
                    None => {
                        let facts = &self.actions.facts;
                        is_guarded |= access::keeps_out(own, &self.server, facts);
                    }
                },
                _ => {}
            }
        }
        self.site.places.splice(0..0, places);
    }

    /// A place behind an `if` that may keep clients out of it: it gives nothing away. A redirect
    /// stays, as that of a whole server does.
    fn guarded(&mut self, own: &Directive, place: Place) -> Place {
        if !matches!(place.body.answer, Some((..400, _))) {
            return place;
        }
        self.actions.leave_out(own, GUARDED);
        refusing(place.paths, place.ignores_case, FORBIDDEN)
    }

    /// The redirects of a `rewrite`; says where there are none, and where they are others.
    fn redirects_of(&mut self, own: &Directive) -> Vec<Redirect> {
        let at = At {
            scheme: self.actions.facts.scheme,
            name: self.actions.name,
            paths: &[],
            expression: None,
        };
        match read_rewrite(own, at) {
            Ok(Rewrite::Redirect(redirects)) => {
                self.actions.remarks_on_redirect(own);
                return redirects;
            }
            Ok(Rewrite::Strip(_)) => self.actions.leave_out(own, NOT_WITHIN),
            Err(why) => self.actions.leave_out(own, &why),
        }
        Vec::new()
    }

    fn place_of_redirect(&self, redirect: Redirect) -> Place {
        Place {
            paths: vec![redirect.from.clone()],
            ignores_case: false,
            body: Body {
                redirects: vec![redirect],
                ..self.site.body.clone().without_files()
            },
        }
    }

    /// What an `if` on the path answers; says where that is nothing, unless it never holds.
    fn place_of_condition(&mut self, own: &'a Directive) -> Option<Place> {
        if self.actions.facts.holds(&Condition::of(own)) == Some(false) {
            return None;
        }
        let place = match path_conditions::refusal(own) {
            Some(_) => self.refused_by(own),
            None => self.answer_of_condition(own),
        };
        if place.is_none() && !self.actions.is_left_out(own) {
            self.actions.leave_out(own, NO_CONDITIONS);
        }
        place
    }

    /// The same where it refuses none, if its paths are told from all others.
    fn answer_of_condition(&mut self, own: &Directive) -> Option<Place> {
        let returned = own.inside().iter().find(|own| own.name == "return")?;
        let paths = path_conditions::exact(own)?;
        let at = At {
            scheme: self.actions.facts.scheme,
            name: self.actions.name,
            paths: &paths.texts,
            expression: None,
        };
        let body = match read_return(returned, at).ok()? {
            Return::Fixed(status, text) => {
                if text.is_some() {
                    let scope = self.server.clone();
                    self.actions.typed(&scope);
                }
                Body {
                    answer: Some((status, text)),
                    ..Body::default()
                }
            }
            // Redirects tell capitals apart.
            Return::Redirect(redirects) if !paths.ignores_case => {
                self.actions.remarks_on_redirect(returned);
                Body {
                    redirects,
                    ..self.site.body.clone().without_files()
                }
            }
            Return::Redirect(_) | Return::Close => return None,
        };
        Some(Place {
            paths: paths.texts,
            ignores_case: paths.ignores_case,
            body,
        })
    }
}
