//! Real nginx behind the proxy.

use super::support::*;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// nginx serving a folder on a free port; stopped when dropped.
struct Nginx {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
    }
}

/// `None` where nginx is not installed.
async fn nginx() -> Option<Nginx> {
    let binary = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        .into_iter()
        .find(|path| Path::new(path).exists())?;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::write(root.join("small.txt"), "small").unwrap();
    std::fs::write(root.join("large.bin"), vec![b'x'; 3 << 20]).unwrap();
    let port = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        free.local_addr().unwrap().port()
    };
    let place = root.display();
    let config = format!(
        "daemon off; worker_processes 1; pid {place}/pid; error_log {place}/error.log;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;\n\
         uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n\
         server {{ listen 127.0.0.1:{port}; root {place}; location /echo {{ return 200 \"$host $http_x_forwarded_for $http_via\"; }} }} }}\n"
    );
    std::fs::write(root.join("nginx.conf"), config).unwrap();
    // A root that only its owner may enter serves nothing to workers of another user.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root, permissions).unwrap();
    let child = Command::new(binary)
        .arg("-c")
        .arg(root.join("nginx.conf"))
        .arg("-p")
        .arg(root)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let nginx = Nginx {
        child,
        folder,
        port,
    };
    while tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .is_err()
    {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    Some(nginx)
}

#[test]
fn nginx_answers_through_the_proxy() {
    run(async {
        let Some(nginx) = nginx().await else {
            eprintln!("nginx is not installed: nothing was tested");
            return;
        };
        assert!(nginx.folder.path().exists());
        let url = format!("http://127.0.0.1:{}", nginx.port);
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
