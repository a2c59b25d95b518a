//! Temporary stand-in with the calls of the uplink crate.
#![expect(missing_docs, reason = "goes away with the uplink crate")]
use std::sync::Arc;
use std::sync::Mutex;
use tokio::net::TcpStream;

#[derive(Clone)]
pub struct Uplink;
impl Uplink {
    pub fn unlimited() -> Self {
        Self
    }
    pub fn wrap(&self, stream: TcpStream) -> (GatedStream, Flow) {
        (stream, Flow(Arc::default()))
    }
    pub fn describe(&self) -> String {
        "no limit".into()
    }
}
pub type GatedStream = TcpStream;
type OnEnd = Box<dyn FnOnce(JobReport) + Send>;
#[derive(Clone)]
pub struct Flow(Arc<Mutex<Option<(u64, OnEnd)>>>);
pub struct ResponseStart {
    pub body_bytes: Option<u64>,
    pub head_bytes: u32,
    pub class: u8,
}
impl Flow {
    pub fn start(&self, s: ResponseStart, on_end: impl FnOnce(JobReport) + Send + 'static) {
        *self.0.lock().unwrap() = Some((
            s.body_bytes.unwrap_or(0) + u64::from(s.head_bytes),
            Box::new(on_end),
        ));
    }
    pub fn body_done(&self) {
        if let Some((sent_bytes, f)) = self.0.lock().unwrap().take() {
            f(JobReport {
                wait_ns: 0,
                service_ns: 0,
                sent_bytes,
                policy: "unlimited",
                rank_at_start: 0,
                bytes_of_others_meanwhile: 0,
                completed: true,
            });
        }
    }
}
pub struct JobReport {
    pub wait_ns: u64,
    pub service_ns: u64,
    pub sent_bytes: u64,
    pub policy: &'static str,
    pub rank_at_start: u64,
    pub bytes_of_others_meanwhile: u64,
    pub completed: bool,
}
