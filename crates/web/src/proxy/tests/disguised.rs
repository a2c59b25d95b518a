//! Names that a client writes with `_` for `-`: a program that reads a request as CGI variables, as
//! every one over WSGI does, takes them for what this server sets itself.

use super::commenting::{SOON, begun, commented, held, take_place};
use super::queueing::with_classes;
use super::support::*;

/// What servers read of a request: the names of CGI, and the values of all that become one.
fn as_variables(request: &str) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for line in request.split("\r\n").skip(1) {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        let name = name.to_uppercase().replace('-', "_");
        match variables.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => *values = format!("{values},{value}"),
            None => variables.push((name, value.to_owned())),
        }
    }
    variables
}

#[test]
fn a_client_forges_neither_its_class_nor_its_wait() {
    run(async {
        let (url, seen) = scripted(|_, _| ok("x")).await;
        let config = with_classes(&url, "[[class]]\nname='gold'\n");
        let proxy = proxy(&config.replace("limit=1", "limit=1\ntell_wait=['server']"));
        let (address, _) = front(&proxy).await;
        let made_up = "x_queue_class: evil\r\nx-queue_class: evil\r\nX_Queue-Class: evil\r\n\
                       x_queue_ms: evil\r\nx_queue_ahead: evil\r\nx_request_start: evil\r\n\
                       x-request_start: evil\r\nx_real_ip: evil\r\nx_client_subject: evil\r\n\
                       x_mine: 1\r\n";
        let asked = format!("GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{made_up}\r\n");
        rest(client(address, &asked).await).await;
        let request = seen.request(0);
        let told = as_variables(&request);
        let of = |name: &str| told.iter().find(|(known, _)| known == name).unwrap();
        assert_eq!(of("X_QUEUE_CLASS").1, "gold", "{request}");
        assert_eq!(of("X_MINE").1, "1");
        assert!(!request.contains("evil"), "{request}");
        // Nor at its end, where servers add trailers to the fields of the head.
        let asked = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\nte: trailers\r\n\
                     trailer: x-queue-class\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\
                     x-queue-class: evil\r\nx_queue_ms: evil\r\nx-sum: 7\r\n\r\n";
        rest(client(address, asked).await).await;
        let request = seen.request(1);
        assert!(!request.contains("evil"), "{request}");
    });
}

#[test]
fn a_stream_behind_comments_is_asked_for_in_plain_whatever_a_client_writes() {
    run(async {
        let (url, seen) = held(|| ok("x")).await;
        let proxy = commented(&url, SOON, "");
        take_place(&proxy, &seen).await;
        let (address, _) = front(&proxy).await;
        let asked = "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\naccept_encoding: gzip\r\n\
                     accept: text/event-stream\r\n\r\n";
        let (stream, _) = begun(address, asked).await;
        seen.let_go.set(1);
        rest(stream).await;
        let told = as_variables(&seen.request(1));
        let coding = told.iter().find(|(name, _)| name == "ACCEPT_ENCODING");
        assert_eq!(coding.unwrap().1, "identity");
    });
}
