//! What nginx says of the arguments of its directives: where each may stand, how many it takes and
//! what they are. Found out by asking `nginx -t` (1.22, and what later versions add), not from its
//! manual; `tests/broken.rs` asks it again.

use super::values::Kind;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What nginx takes of a directive.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Where it may stand, as letters: `Level::letter`.
    pub levels: &'static str,
    /// The least number of arguments, and the most.
    pub counts: (usize, usize),
    /// Whether it has braces.
    pub has_block: bool,
    /// What its arguments are.
    pub kind: Kind,
    /// Whether a second one in a block is refused.
    pub is_once: bool,
}

/// What nginx takes of this directive; `None` where it is not one of nginx's own.
pub fn of(name: &str) -> Option<&'static Signature> {
    static ALL: LazyLock<HashMap<&'static str, Signature>> = LazyLock::new(|| {
        let lines = TABLE.lines().filter_map(|line| line.split_once(": "));
        let each = lines.flat_map(|(head, names)| {
            let signature = signature(head);
            names.split(' ').map(move |name| (name, signature))
        });
        each.collect()
    });
    ALL.get(name)
}

fn signature(head: &'static str) -> Signature {
    let words: Vec<&'static str> = head.split(' ').collect();
    let counts = words.get(1).copied().unwrap_or_default();
    let (least, most) = counts.split_once('-').unwrap_or((counts, counts));
    Signature {
        levels: words.first().copied().unwrap_or_default(),
        counts: (
            least.parse().unwrap_or(0),
            most.parse().unwrap_or(usize::MAX),
        ),
        has_block: words.contains(&"block"),
        kind: Kind::of(&words),
        is_once: words.contains(&"once"),
    }
}

/// Levels, number of arguments, kind, how often in a block: names.
const TABLE: &str = "\
E 1 any more: debug_connection
E 1 any once: use
E 1 flag once: accept_mutex multi_accept
E 1 number once: worker_aio_requests worker_connections
E 1 time once: accept_mutex_delay
H 1 number once: map_hash_bucket_size map_hash_max_size server_names_hash_bucket_size
H 1 number once: server_names_hash_max_size variables_hash_bucket_size variables_hash_max_size
H 1 size once: http2_recv_buffer_size
H 1 block any more: upstream
H 1-2 block any more: geo
H 2 any more: limit_conn_zone
H 2 block any more: charset_map map split_clients
H 2- any more: fastcgi_cache_path log_format proxy_cache_path scgi_cache_path uwsgi_cache_path
H 3 any more: limit_req_zone
HS 1 any more: ssl_certificate ssl_certificate_key ssl_password_file ssl_session_ticket_key
HS 1 any once: ssl_ciphers ssl_client_certificate ssl_crl ssl_dhparam ssl_ecdh_curve ssl_ocsp
HS 1 any once: ssl_ocsp_cache ssl_ocsp_responder ssl_stapling_file ssl_stapling_responder
HS 1 any once: ssl_trusted_certificate ssl_verify_client
HS 1 flag once: ignore_invalid_headers merge_slashes ssl ssl_early_data
HS 1 flag once: ssl_prefer_server_ciphers ssl_reject_handshake ssl_session_tickets ssl_stapling
HS 1 flag once: ssl_stapling_verify underscores_in_headers
HS 1 number more: http2_streams_index_size
HS 1 number once: http2_max_concurrent_pushes http2_max_concurrent_streams ssl_verify_depth
HS 1 seconds once: ssl_session_timeout
HS 1 size once: client_header_buffer_size connection_pool_size http2_body_preread_size
HS 1 size once: http2_pool_size request_pool_size ssl_buffer_size
HS 1 time once: client_header_timeout
HS 1- any more: ssl_protocols
HS 1-2 any more: ssl_session_cache
HS 2 any more: ssl_conf_command
HS 2 buffers once: large_client_header_buffers
HSL 0 block any more: types
HSL 1 any more: ancient_browser_value fastcgi_hide_header fastcgi_pass_header grpc_hide_header
HSL 1 any more: grpc_pass_header grpc_ssl_password_file http2_push mirror modern_browser_value
HSL 1 any more: proxy_hide_header proxy_pass_header proxy_ssl_password_file scgi_hide_header
HSL 1 any more: scgi_pass_header set_real_ip_from uwsgi_hide_header uwsgi_pass_header
HSL 1 any more: uwsgi_ssl_password_file
HSL 1 any once: add_after_body add_before_body aio auth_request autoindex_format
HSL 1 any once: client_body_in_file_only default_type directio fastcgi_cache fastcgi_cache_key
HSL 1 any once: fastcgi_index fastcgi_split_path_info fastcgi_store grpc_ssl_certificate
HSL 1 any once: grpc_ssl_certificate_key grpc_ssl_ciphers grpc_ssl_crl grpc_ssl_name
HSL 1 any once: grpc_ssl_trusted_certificate gzip_hash gzip_http_version gzip_static gzip_window
HSL 1 any once: if_modified_since limit_conn_log_level limit_req_log_level lingering_close
HSL 1 any once: proxy_cache proxy_cache_key proxy_http_version proxy_method proxy_set_body
HSL 1 any once: proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_ciphers proxy_ssl_crl
HSL 1 any once: proxy_ssl_name proxy_ssl_trusted_certificate proxy_store real_ip_header satisfy
HSL 1 any once: scgi_cache scgi_cache_key scgi_store secure_link secure_link_md5
HSL 1 any once: secure_link_secret server_tokens userid userid_domain userid_expires userid_mark
HSL 1 any once: userid_name userid_p3p userid_path uwsgi_cache uwsgi_cache_key
HSL 1 any once: uwsgi_ssl_certificate uwsgi_ssl_certificate_key uwsgi_ssl_ciphers uwsgi_ssl_crl
HSL 1 any once: uwsgi_ssl_name uwsgi_ssl_trusted_certificate uwsgi_store uwsgi_string
HSL 1 flag once: absolute_redirect aio_write autoindex autoindex_exact_size autoindex_localtime
HSL 1 flag once: chunked_transfer_encoding client_body_in_single_buffer create_full_put_path
HSL 1 flag once: etag fastcgi_buffering fastcgi_cache_background_update fastcgi_cache_lock
HSL 1 flag once: fastcgi_cache_revalidate fastcgi_force_ranges fastcgi_ignore_client_abort
HSL 1 flag once: fastcgi_intercept_errors fastcgi_keep_conn fastcgi_pass_request_body
HSL 1 flag once: fastcgi_pass_request_headers fastcgi_request_buffering fastcgi_socket_keepalive
HSL 1 flag once: grpc_intercept_errors grpc_socket_keepalive grpc_ssl_server_name
HSL 1 flag once: grpc_ssl_session_reuse grpc_ssl_verify gunzip gzip_vary http2_push_preload
HSL 1 flag once: limit_conn_dry_run limit_req_dry_run log_not_found log_subrequest
HSL 1 flag once: memcached_socket_keepalive mirror_request_body mp4_start_key_frame msie_padding
HSL 1 flag once: msie_refresh open_file_cache_errors open_file_cache_events port_in_redirect
HSL 1 flag once: proxy_buffering proxy_cache_background_update proxy_cache_lock
HSL 1 flag once: proxy_cache_revalidate proxy_force_ranges proxy_ignore_client_abort
HSL 1 flag once: proxy_intercept_errors proxy_pass_request_body proxy_pass_request_headers
HSL 1 flag once: proxy_request_buffering proxy_socket_keepalive proxy_ssl_server_name
HSL 1 flag once: proxy_ssl_session_reuse proxy_ssl_verify real_ip_recursive
HSL 1 flag once: recursive_error_pages reset_timedout_connection scgi_buffering
HSL 1 flag once: scgi_cache_background_update scgi_cache_lock scgi_cache_revalidate
HSL 1 flag once: scgi_force_ranges scgi_ignore_client_abort scgi_intercept_errors
HSL 1 flag once: scgi_pass_request_body scgi_pass_request_headers scgi_request_buffering
HSL 1 flag once: scgi_socket_keepalive server_name_in_redirect ssi_ignore_recycled_buffers
HSL 1 flag once: ssi_last_modified ssi_silent_errors sub_filter_last_modified sub_filter_once
HSL 1 flag once: tcp_nodelay tcp_nopush uwsgi_buffering uwsgi_cache_background_update
HSL 1 flag once: uwsgi_cache_lock uwsgi_cache_revalidate uwsgi_force_ranges
HSL 1 flag once: uwsgi_ignore_client_abort uwsgi_intercept_errors uwsgi_pass_request_body
HSL 1 flag once: uwsgi_pass_request_headers uwsgi_request_buffering uwsgi_socket_keepalive
HSL 1 flag once: uwsgi_ssl_server_name uwsgi_ssl_session_reuse uwsgi_ssl_verify
HSL 1 number once: fastcgi_cache_min_uses fastcgi_next_upstream_tries grpc_next_upstream_tries
HSL 1 number once: grpc_ssl_verify_depth gzip_comp_level limit_conn_status limit_req_status
HSL 1 number once: max_ranges memcached_gzip_flag memcached_next_upstream_tries min_delete_depth
HSL 1 number once: open_file_cache_min_uses proxy_cache_min_uses proxy_headers_hash_bucket_size
HSL 1 number once: proxy_headers_hash_max_size proxy_next_upstream_tries proxy_ssl_verify_depth
HSL 1 number once: scgi_cache_min_uses scgi_next_upstream_tries types_hash_bucket_size
HSL 1 number once: types_hash_max_size userid_service uwsgi_cache_min_uses uwsgi_modifier1
HSL 1 number once: uwsgi_modifier2 uwsgi_next_upstream_tries uwsgi_ssl_verify_depth
HSL 1 offset once: client_max_body_size directio_alignment fastcgi_cache_max_range_offset
HSL 1 offset once: proxy_cache_max_range_offset scgi_cache_max_range_offset
HSL 1 offset once: uwsgi_cache_max_range_offset
HSL 1 seconds once: open_file_cache_valid
HSL 1 size once: client_body_buffer_size fastcgi_buffer_size fastcgi_busy_buffers_size
HSL 1 size once: fastcgi_limit_rate fastcgi_max_temp_file_size fastcgi_send_lowat
HSL 1 size once: fastcgi_temp_file_write_size grpc_buffer_size gzip_min_length http2_chunk_size
HSL 1 size once: memcached_buffer_size mp4_buffer_size mp4_max_buffer_size postpone_gzipping
HSL 1 size once: postpone_output proxy_buffer_size proxy_busy_buffers_size proxy_limit_rate
HSL 1 size once: proxy_max_temp_file_size proxy_send_lowat proxy_temp_file_write_size read_ahead
HSL 1 size once: scgi_buffer_size scgi_busy_buffers_size scgi_limit_rate scgi_max_temp_file_size
HSL 1 size once: scgi_temp_file_write_size send_lowat sendfile_max_chunk slice
HSL 1 size once: ssi_min_file_chunk ssi_value_length subrequest_output_buffer_size
HSL 1 size once: uwsgi_buffer_size uwsgi_busy_buffers_size uwsgi_limit_rate
HSL 1 size once: uwsgi_max_temp_file_size uwsgi_temp_file_write_size
HSL 1 time once: auth_delay client_body_timeout fastcgi_cache_lock_age
HSL 1 time once: fastcgi_cache_lock_timeout fastcgi_connect_timeout
HSL 1 time once: fastcgi_next_upstream_timeout fastcgi_read_timeout fastcgi_send_timeout
HSL 1 time once: grpc_connect_timeout grpc_next_upstream_timeout grpc_read_timeout
HSL 1 time once: grpc_send_timeout lingering_time lingering_timeout memcached_connect_timeout
HSL 1 time once: memcached_next_upstream_timeout memcached_read_timeout memcached_send_timeout
HSL 1 time once: proxy_cache_lock_age proxy_cache_lock_timeout proxy_connect_timeout
HSL 1 time once: proxy_next_upstream_timeout proxy_read_timeout proxy_send_timeout
HSL 1 time once: scgi_cache_lock_age scgi_cache_lock_timeout scgi_connect_timeout
HSL 1 time once: scgi_next_upstream_timeout scgi_read_timeout scgi_send_timeout send_timeout
HSL 1 time once: uwsgi_cache_lock_age uwsgi_cache_lock_timeout uwsgi_connect_timeout
HSL 1 time once: uwsgi_next_upstream_timeout uwsgi_read_timeout uwsgi_send_timeout
HSL 1- any more: addition_types ancient_browser charset_types dav_methods fastcgi_cache_bypass
HSL 1- any more: fastcgi_cache_methods fastcgi_cache_use_stale fastcgi_cache_valid
HSL 1- any more: fastcgi_ignore_headers fastcgi_next_upstream fastcgi_no_cache
HSL 1- any more: grpc_ignore_headers grpc_next_upstream grpc_ssl_protocols gzip_disable
HSL 1- any more: gzip_proxied gzip_types index memcached_next_upstream proxy_cache_bypass
HSL 1- any more: proxy_cache_methods proxy_cache_use_stale proxy_cache_valid
HSL 1- any more: proxy_ignore_headers proxy_next_upstream proxy_no_cache proxy_ssl_protocols
HSL 1- any more: scgi_cache_bypass scgi_cache_methods scgi_cache_use_stale scgi_cache_valid
HSL 1- any more: scgi_ignore_headers scgi_next_upstream scgi_no_cache ssi_types sub_filter_types
HSL 1- any more: uwsgi_cache_bypass uwsgi_cache_methods uwsgi_cache_use_stale uwsgi_cache_valid
HSL 1- any more: uwsgi_ignore_headers uwsgi_next_upstream uwsgi_no_cache uwsgi_ssl_protocols
HSL 1-2 any more: keepalive_disable modern_browser proxy_cookie_domain proxy_cookie_path
HSL 1-2 any more: proxy_redirect
HSL 1-2 any once: disable_symlinks fastcgi_bind grpc_bind memcached_bind open_file_cache
HSL 1-2 any once: proxy_bind scgi_bind uwsgi_bind
HSL 1-3 any more: limit_req userid_flags
HSL 1-3 any once: dav_access fastcgi_store_access proxy_store_access scgi_store_access
HSL 1-3 any once: uwsgi_store_access
HSL 1-4 any more: proxy_cookie_flags
HSL 1-4 any once: client_body_temp_path fastcgi_temp_path open_log_file_cache proxy_temp_path
HSL 1-4 any once: scgi_temp_path uwsgi_temp_path
HSL 2 any more: auth_request_set grpc_set_header grpc_ssl_conf_command limit_conn
HSL 2 any more: proxy_set_header proxy_ssl_conf_command sub_filter uwsgi_ssl_conf_command
HSL 2 buffers once: fastcgi_buffers gunzip_buffers gzip_buffers output_buffers proxy_buffers
HSL 2 buffers once: scgi_buffers uwsgi_buffers
HSL 2-3 any more: fastcgi_param scgi_param uwsgi_param
HSLF 1 any once: charset limit_rate limit_rate_after root source_charset
HSLF 1 flag once: gzip override_charset sendfile ssi
HSLF 1-2 any once: expires
HSLF 2- any more: error_page
HSLF 2-3 any more: add_header add_trailer
HSLFX 1- any more: access_log
HSLIF 1 flag once: rewrite_log uninitialized_variable_warn
HSLU 1 number once: keepalive_requests
HSLU 1 time once: keepalive_time resolver_timeout
HSLU 1- any once: resolver
HSLU 1-2 time once: keepalive_timeout
HSLX 1 any more: allow deny
HSLX 1 any once: auth_basic auth_basic_user_file
HU 0 block any more: server
L 0 any more: empty_gif flv mp4
L 0 any once: internal
L 1 any once: alias
L 1 flag once: random_index
L 1- block any more: limit_except
LF 1 any once: fastcgi_pass grpc_pass memcached_pass scgi_pass uwsgi_pass
LFX 1 any once: proxy_pass
M 0 block any once: events http
M 1 any more: debug_points env load_module ssl_engine
M 1 any once: lock_file pid worker_priority worker_processes working_directory
M 1 flag once: daemon master_process pcre_jit
M 1 number once: worker_rlimit_nofile
M 1 offset once: worker_rlimit_core
M 1 time once: timer_resolution worker_shutdown_timeout
M 1- any once: worker_cpu_affinity
M 1-2 any once: user
M 2-3 any more: thread_pool
MHSL 1- any more: error_log
S 1- any more: listen server_name
SL 0-1 any more: stub_status
SL 1 number once: referer_hash_bucket_size referer_hash_max_size
SL 1- any more: valid_referers
SL 1- block any more: if
SL 1-2 block any more: location
SL 2- any once: try_files
SLIF 0 any more: break
SLIF 1-2 any more: return
SLIF 2 any more: set
SLIF 2-3 any more: rewrite
U 0 any more: ip_hash least_conn
U 0-2 any more: random
U 1-2 any more: hash zone
U 1-2 any once: keepalive
HS 1 flag once: http2 http3 quic_gso quic_retry
HSLF 1 flag once: brotli
HSL 1 number once: brotli_comp_level
HSL 1 any once: brotli_static
HSL 1- any more: brotli_types
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_something() {
        let lines: Vec<&str> = TABLE.lines().collect();
        for line in &lines {
            let (head, names) = line.split_once(": ").unwrap();
            assert!(!names.is_empty() && head.split(' ').count() >= 4, "{line}");
            let signature = signature(head);
            assert!(signature.counts.0 <= signature.counts.1, "{line}");
        }
        assert!(lines.len() > 150);
        assert_eq!(of("gzip_buffers").unwrap().counts, (2, 2));
        assert_eq!(of("index").unwrap().counts, (1, usize::MAX));
        assert!(of("more_set_headers").is_none());
    }
}
