//! Real nginx behind the proxy.

use super::support::*;
use sooner_testbed::nginx::{self, Nginx};
use sooner_testbed::{port, skip};
use std::net::SocketAddr;

/// nginx serving a folder on a free port.
struct Served {
    _nginx: Nginx,
    _folder: tempfile::TempDir,
    address: SocketAddr,
}

/// `None` where nginx is not installed.
fn served() -> Option<Served> {
    if !nginx::has_modules(&[]) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::write(root.join("small.txt"), "small").unwrap();
    std::fs::write(root.join("large.bin"), vec![b'x'; 3 << 20]).unwrap();
    // A root that no other user may enter serves nothing to workers of another user.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root, permissions).unwrap();
    let address = port::free().unwrap();
    let http = format!(
        "access_log off; server {{ listen {address}; root {}; \
         location /echo {{ return 200 \"$host $http_x_forwarded_for $http_via\"; }} }}\n",
        root.display()
    );
    let nginx = Nginx::start(root, &http, address).unwrap();
    Some(Served {
        _nginx: nginx,
        _folder: folder,
        address,
    })
}

#[test]
fn nginx_answers_through_the_proxy() {
    run(async {
        let Some(nginx) = served() else {
            skip("nginx_answers_through_the_proxy", "needs the package nginx");
            return;
        };
        let url = format!("http://{}", nginx.address);
        let proxy = to(&[&url], "limit = 4");
        let small = ask(&proxy, get("/small.txt")).await;
        assert_eq!((small.status, small.text()), (200, "small"));
        assert_eq!(small.headers["content-length"], "5");
        let large = ask(&proxy, get("/large.bin")).await;
        assert_eq!(large.body.unwrap().len(), 3 << 20);
        let mut part = get("/large.bin");
        let range = hyper::header::HeaderValue::from_static("bytes=10-19");
        part.headers_mut().insert("range", range);
        let part = ask(&proxy, part).await;
        assert_eq!((part.status, part.text()), (206, "xxxxxxxxxx"));
        let mut head = get("/large.bin");
        *head.method_mut() = hyper::Method::HEAD;
        let head = ask(&proxy, head).await;
        assert_eq!(head.headers["content-length"], (3 << 20).to_string());
        assert!(head.text().is_empty());
        assert_eq!(ask(&proxy, get("/nothing")).await.status, 404);
        let echo = ask(&proxy, get("/echo")).await;
        assert_eq!(echo.text(), "example.org 192.0.2.7 1.1 sooner");
        let many: Vec<_> = (0..50)
            .map(|_| {
                let proxy = proxy.clone();
                tokio::task::spawn_local(async move { ask(&proxy, get("/large.bin")).await })
            })
            .collect();
        for one in many {
            assert_eq!(one.await.unwrap().body.unwrap().len(), 3 << 20);
        }
        let state = &proxy.states()[0];
        assert_eq!((state.inside, state.waiting, state.failures), (0, 0, 0));
    });
}
