//! Locations by expression that lead to the upstream of the rest.

use super::lines;

fn count(lines: &[String], wanted: &str) -> usize {
    lines.iter().filter(|line| *line == wanted).count()
}

#[test]
fn assets_of_an_upstream_take_the_route_of_the_rest() {
    let lines = lines(
        "upstream app { server 127.0.0.1:3000; } server { proxy_set_header Host $host; \
         location / { proxy_pass http://app; } \
         location ~* \\.(css|js|png)$ { proxy_pass http://app; expires 30d; add_header X-Kind asset; } \
         location /b/ { proxy_pass http://app; } }",
    );
    let text = lines.join("\n");
    assert!(
        !text.contains("status = 501") && !text.contains("not carried"),
        "{text}"
    );
    let place = "[[site.location]]\npaths = [\"*.css\", \"*.js\", \"*.png\"]\nignore_case = true\n\
                 headers = { X-Kind = \"asset\" }";
    assert!(text.contains(place), "{text}");
    let rule = "[[site.expires]]\nextensions = [\"css\", \"js\", \"png\"]\nafter = \"30d\"\nproxied = true";
    assert!(text.contains(rule), "{text}");
    assert_eq!(count(&lines, "[[route]]"), 2, "{text}");
    assert_eq!(count(&lines, "[[upstream]]"), 1, "{text}");
}

/// nginx takes port 80 for a server of a block, whatever it speaks to it.
#[test]
fn servers_of_a_block_without_a_port_have_port_80() {
    let block = "upstream app { server a.org; server 10.0.0.1:8443; server [::1]; }";
    for (pass, scheme) in [
        ("proxy_pass http://app;", "http"),
        ("proxy_pass https://app;", "https"),
        ("grpc_pass grpc://app;", "h2c"),
        ("grpc_pass grpcs://app;", "https"),
    ] {
        let lines = lines(&format!("{block} server {{ location / {{ {pass} }} }}"));
        let places = ["a.org:80", "10.0.0.1:8443", "[::1]:80"];
        let servers = places.map(|place| format!("\"{scheme}://{place}\""));
        let right = format!("servers = [{}]", servers.join(", "));
        assert_eq!(count(&lines, &right), 1, "{}", lines.join("\n"));
    }
    for (pass, server) in [
        ("proxy_pass http://a.org;", "http://a.org:80"),
        ("proxy_pass https://a.org;", "https://a.org:443"),
        ("grpc_pass grpcs://a.org;", "https://a.org:443"),
    ] {
        let lines = lines(&format!("server {{ location / {{ {pass} }} }}"));
        let right = format!("servers = [\"{server}\"]");
        assert_eq!(count(&lines, &right), 1, "{}", lines.join("\n"));
    }
}

#[test]
fn assets_that_might_go_elsewhere_get_501() {
    let asset = "location ~ \\.css$ { proxy_pass http://app; }";
    for others in [
        "location / { proxy_pass http://other; }",
        "location / { root /srv; }",
        "location / { proxy_pass http://app; } location /b/ { proxy_pass http://other; }",
        "location / { proxy_pass http://app; } location /b/ { proxy_pass http://app/; }",
        "location / { proxy_pass http://app; } location ~ ^/b/ { proxy_pass http://other; }",
        "root /srv; location / { try_files $uri @app; } location @app { proxy_pass http://app; }",
    ] {
        // Of expressions the first counts.
        let lines = lines(&format!("server {{ {asset} {others} }}"));
        let text = lines.join("\n");
        assert!(text.contains("paths = [\"*.css\"]\nstatus = 501"), "{text}");
        assert!(
            text.contains("# not carried over: location ~ \\.css$"),
            "{text}"
        );
    }
    for others in [
        // These come before.
        "location / { proxy_pass http://app; } location ^~ /b/ { proxy_pass http://other; }",
        // These have no route, and the first place counts.
        "location / { proxy_pass http://app; } location /b/ { root /srv; }",
    ] {
        let text = lines(&format!("server {{ {asset} {others} }}")).join("\n");
        assert!(!text.contains("status = 501"), "{text}");
    }
    let text = lines(
        "server { location / { proxy_pass http://app; proxy_read_timeout 5s; } \
         location ~ \\.css$ { proxy_pass http://app; proxy_read_timeout 9s; } }",
    )
    .join("\n");
    assert!(
        text.contains("# not carried over: proxy_read_timeout 9s: "),
        "{text}"
    );
    assert!(!text.contains("status = 501"), "{text}");
}
