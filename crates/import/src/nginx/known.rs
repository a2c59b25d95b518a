//! What becomes of each directive that is not translated.

use super::tree::Directive;

/// What to do about a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Another part of the import looks at it.
    Carried,
    /// Sooner does it anyway, or it is about the inside of nginx.
    Moot,
    /// A comment says that it is left out, and why.
    LeftOut(&'static str),
}

const CARRIED: [&str; 91] = [
    "access_log",
    "add_header",
    "alias",
    "allow",
    "auth_basic",
    "auth_basic_user_file",
    "auth_jwt",
    "auth_request",
    "autoindex",
    "client_body_timeout",
    "client_header_timeout",
    "client_max_body_size",
    "default_type",
    "deny",
    "disable_symlinks",
    "error_page",
    "events",
    "expires",
    "fastcgi_connect_timeout",
    "fastcgi_index",
    "fastcgi_param",
    "fastcgi_pass",
    "fastcgi_pass_request_headers",
    "fastcgi_read_timeout",
    "fastcgi_split_path_info",
    "grpc_pass",
    "grpc_pass_request_headers",
    "http",
    "if",
    "include",
    "index",
    "internal",
    "js_access",
    "js_content",
    "keepalive_timeout",
    "limit_except",
    "listen",
    "location",
    "mail",
    "memcached_pass",
    "perl",
    "proxy_connect_timeout",
    "proxy_pass",
    "proxy_pass_request_headers",
    "proxy_read_timeout",
    "proxy_redirect",
    "proxy_set_header",
    "proxy_ssl_name",
    "proxy_ssl_server_name",
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "random_index",
    "real_ip_header",
    "return",
    "rewrite",
    "root",
    "satisfy",
    "scgi_pass",
    "send_timeout",
    "server",
    "server_name",
    "set",
    "set_real_ip_from",
    "ssl",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_protocols",
    "ssl_reject_handshake",
    "ssl_verify_client",
    "stream",
    "stub_status",
    "try_files",
    "types",
    "upstream",
    "user",
    "uwsgi_pass",
    "gzip",
    "gzip_comp_level",
    "gzip_min_length",
    "gzip_static",
    "gzip_types",
    "brotli",
    "brotli_comp_level",
    "brotli_min_length",
    "brotli_static",
    "brotli_types",
    "dav_methods",
    "mp4",
    "flv",
    "empty_gif",
];

/// About the inside of nginx, or what Sooner does without a word.
const MOOT: [&str; 85] = [
    "absolute_redirect",
    "accept_mutex",
    "aio",
    "aio_write",
    "autoindex_exact_size",
    "autoindex_localtime",
    "charset",
    "charset_types",
    "chunked_transfer_encoding",
    "client_body_buffer_size",
    "client_body_in_file_only",
    "client_body_temp_path",
    "client_header_buffer_size",
    "connection_pool_size",
    "daemon",
    "directio",
    "error_log",
    "etag",
    "fastcgi_temp_path",
    "fastcgi_keep_conn",
    "fastcgi_request_buffering",
    "brotli_buffers",
    "brotli_window",
    "gzip_buffers",
    "gzip_disable",
    "gzip_http_version",
    "gzip_proxied",
    "gzip_vary",
    "http2",
    "http2_max_concurrent_streams",
    "http2_push_preload",
    "if_modified_since",
    "ignore_invalid_headers",
    "keepalive_disable",
    "keepalive_min_timeout",
    "keepalive_requests",
    "large_client_header_buffers",
    "limit_conn_log_level",
    "limit_req_log_level",
    "lingering_close",
    "lingering_timeout",
    "load_module",
    "log_format",
    "log_not_found",
    "log_subrequest",
    "master_process",
    "max_ranges",
    "merge_slashes",
    "msie_padding",
    "open_file_cache",
    "open_file_cache_errors",
    "open_file_cache_min_uses",
    "open_file_cache_valid",
    "open_log_file_cache",
    "output_buffers",
    "pcre_jit",
    "pid",
    "port_in_redirect",
    "postpone_output",
    "read_ahead",
    "recursive_error_pages",
    "request_pool_size",
    "reset_timedout_connection",
    "resolver",
    "resolver_timeout",
    "scgi_temp_path",
    "sendfile",
    "sendfile_max_chunk",
    "server_name_in_redirect",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "server_tokens",
    "source_charset",
    "tcp_nodelay",
    "tcp_nopush",
    "thread_pool",
    "timer_resolution",
    "types_hash_bucket_size",
    "types_hash_max_size",
    "underscores_in_headers",
    "uwsgi_temp_path",
    "variables_hash_bucket_size",
    "variables_hash_max_size",
    "rewrite_log",
    "uninitialized_variable_warn",
];

/// Beginnings of the names of directives about the inside of nginx.
const MOOT_BEGINNINGS: [&str; 13] = [
    "worker_",
    "fastcgi_buffer",
    "fastcgi_busy_buffers",
    "fastcgi_max_temp",
    "fastcgi_socket_keepalive",
    "fastcgi_temp_",
    "proxy_buffer",
    "proxy_busy_buffers",
    "proxy_temp_",
    "proxy_max_temp",
    "proxy_headers_hash",
    "proxy_socket_keepalive",
    "debug_",
];

const LEFT_OUT: [(&str, &str); 38] = [
    (
        "limit_req",
        "Sooner does not limit the rate of requests; limits.connections_per_address bounds connections",
    ),
    (
        "limit_req_zone",
        "Sooner has no zones; limits.connections_per_address bounds connections",
    ),
    (
        "limit_conn",
        "limits.connections_per_address bounds the connections of one address, at all sites",
    ),
    (
        "limit_conn_zone",
        "Sooner has no zones; limits.connections_per_address bounds connections",
    ),
    (
        "limit_rate",
        "Sooner orders responses and does not slow them down: uplink.rate and uplink.policy",
    ),
    (
        "limit_rate_after",
        "Sooner orders responses and does not slow them down: uplink.rate and uplink.policy",
    ),
    ("map", "Sooner has no variables"),
    ("geo", "Sooner has no variables"),
    (
        "split_clients",
        "Sooner has no variables; an upstream of several servers shares requests out",
    ),
    ("sub_filter", "Sooner does not change answers"),
    ("proxy_cache", "Sooner does not cache answers of upstreams"),
    (
        "proxy_next_upstream",
        "upstream.retries sets how often a request is sent again",
    ),
    (
        "proxy_next_upstream_tries",
        "upstream.retries sets how often a request is sent again",
    ),
    (
        "proxy_intercept_errors",
        "answers of upstreams pass as they are; site.errors is for Sooner's own",
    ),
    (
        "proxy_hide_header",
        "headers of upstreams pass as they are; site.headers replaces them",
    ),
    (
        "fastcgi_hide_header",
        "headers of scripts pass as they are; site.headers replaces them, expose_php = off hides PHP",
    ),
    (
        "fastcgi_intercept_errors",
        "answers of scripts pass as they are; site.errors is for Sooner's own",
    ),
    (
        "fastcgi_ignore_client_abort",
        "when a client leaves, the connection to its script is closed",
    ),
    (
        "fastcgi_send_timeout",
        "upstream.connect_seconds and response_seconds bound what a server takes",
    ),
    ("fastcgi_cache", "Sooner does not cache answers of scripts"),
    ("proxy_pass_header", "headers of upstreams pass as they are"),
    ("proxy_cookie_path", "headers of upstreams pass as they are"),
    (
        "proxy_cookie_domain",
        "headers of upstreams pass as they are",
    ),
    (
        "proxy_send_timeout",
        "upstream.connect_seconds and response_seconds bound what a server takes",
    ),
    ("proxy_method", "the method of the client is passed on"),
    (
        "real_ip_recursive",
        "the last address in X-Forwarded-For that is not trusted counts",
    ),
    (
        "modsecurity",
        "Sooner looks at no contents of requests: what these rules refuse gets through",
    ),
    ("ssl_crl", "Sooner reads no lists of revoked certificates"),
    (
        "ssl_ocsp",
        "Sooner asks no server whether a certificate is revoked",
    ),
    (
        "ssl_ocsp_responder",
        "Sooner asks no server whether a certificate is revoked",
    ),
    (
        "ssl_verify_depth",
        "chains of clients' certificates may be longer",
    ),
    ("ssl_stapling", "Sooner staples no answers of OCSP"),
    ("ssl_password_file", "keys are without a passphrase"),
    (
        "ssl_trusted_certificate",
        "tls.client_ca is ssl_client_certificate; nothing else is trusted",
    ),
    ("mirror", "a request goes to one upstream"),
    (
        "ssl_dhparam",
        "Sooner agrees on keys by elliptic curves only",
    ),
    ("slice", "answers of upstreams pass as they are"),
    ("userid", "Sooner has no variables"),
];

/// Beginnings of names, and why what begins so is left out.
const LEFT_OUT_BEGINNINGS: [(&str, &str); 14] = [
    (
        "gzip_",
        "[compression] has codings, types, levels and the least length",
    ),
    (
        "brotli",
        "[compression] has codings, types, levels and the least length",
    ),
    ("fastcgi_cache_", "Sooner does not cache answers of scripts"),
    (
        "fastcgi_next_upstream",
        "upstream.retries sets how often a request is sent again",
    ),
    ("fastcgi_", "an upstream of scripts has no equivalent"),
    (
        "uwsgi_",
        "Sooner does not speak uwsgi; let uWSGI speak HTTP (http-socket)",
    ),
    ("scgi_", "Sooner has no SCGI"),
    (
        "grpc_",
        "upstream and route have keys for what an upstream may take",
    ),
    ("proxy_cache_", "Sooner does not cache answers of upstreams"),
    (
        "proxy_ssl_",
        "upstream.ca names the authorities to trust; nothing else of TLS is set",
    ),
    (
        "ssl_",
        "TLS 1.2 and 1.3 use what both sides prefer; tickets and resumption are on",
    ),
    ("sub_filter_", "Sooner does not change answers"),
    ("quic", "Sooner has no HTTP/3"),
    ("http3", "Sooner has no HTTP/3"),
];

/// What is about answers by this value alone, and why it is left out.
const LEFT_OUT_VALUES: [(&str, &str, &str); 5] = [
    ("etag", "off", "files are always sent with ETag"),
    (
        "if_modified_since",
        "off",
        "a file that the client has already gets 304",
    ),
    (
        "max_ranges",
        "0",
        "parts of files are sent to those who ask for them",
    ),
    (
        "merge_slashes",
        "off",
        "for files and locations slashes side by side are one",
    ),
    (
        "underscores_in_headers",
        "off",
        "headers with an underscore in the name are passed to upstreams, but not to scripts",
    ),
];

/// What is to be done about a directive that no part looked at.
pub fn class_of(own: &Directive) -> Class {
    let is_it = |(name, value, _): &&(&str, &str, &str)| own.name == *name && own.first() == *value;
    if let Some((_, _, why)) = LEFT_OUT_VALUES.iter().find(is_it) {
        return Class::LeftOut(why);
    }
    let charset = own.first().to_ascii_lowercase();
    match own.name.as_str() {
        "charset" if !matches!(charset.as_str(), "utf-8" | "off") => {
            Class::LeftOut("text is sent as UTF-8, whatever it is")
        }
        name => class(name),
    }
}

fn class(name: &str) -> Class {
    if CARRIED.contains(&name) {
        return Class::Carried;
    }
    // Sooner does both by itself.
    let is_same = matches!(name, "proxy_http_version" | "proxy_request_buffering")
        // Whole files of these come with nginx; what they belong to is said not to be there.
        || name.ends_with("_param");
    if is_same || MOOT.contains(&name) || MOOT_BEGINNINGS.iter().any(|own| name.starts_with(own)) {
        return Class::Moot;
    }
    let whole = LEFT_OUT.iter().find(|(own, _)| *own == name);
    let begun = || {
        LEFT_OUT_BEGINNINGS
            .iter()
            .find(|(own, _)| name.starts_with(own))
    };
    match whole.or_else(begun) {
        Some((_, why)) => Class::LeftOut(why),
        None if name.contains("_by_lua") => Class::LeftOut("Sooner has no scripting"),
        None => Class::LeftOut("Sooner has no equivalent"),
    }
}
