//! What is told of a collector that stops answering in the midst of a request.

use tokio::net::TcpListener;

use super::*;
use crate::collector::address_path;

/// Short, as nobody here is to be waited for.
const SOON: Duration = Duration::from_millis(50);

/// A client of somebody who is there, as the system takes connections for a program that is
/// paused, and says nothing.
async fn client_of_one_who_is_silent(dir: &Path) -> (TcpListener, JobClient) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let path = address_path(dir);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, listener.local_addr().unwrap().to_string()).unwrap();
    let client = JobClient::connect_with(dir, SOON).await.unwrap();
    (listener, client)
}

#[tokio::test]
async fn a_collector_that_is_paused_while_it_is_asked_is_not_said_to_be_gone() {
    let top = tempfile::tempdir().unwrap();
    let (listener, mut client) = client_of_one_who_is_silent(top.path()).await;
    let silent = client.snapshot(Vec::new()).await.unwrap_err();
    assert!(matches!(silent, ClientError::Silent { .. }), "{silent:?}");
    let told = silent.to_string();
    assert!(told.contains("`cutline resume collector`"), "{told}");
    // Nor when it is asked again, on another connection.
    let silent = client.restore(None).await.unwrap_err();
    assert!(matches!(silent, ClientError::Silent { .. }), "{silent:?}");
    // One that nobody can connect to is.
    drop(listener);
    let gone = async {
        loop {
            // The connection that is open may be the first to be found broken.
            match client.stop().await.unwrap_err() {
                ClientError::Lost(_) => {}
                gone => return gone,
            }
        }
    };
    let gone = gone.await;
    assert!(matches!(gone, ClientError::NotRunning { .. }), "{gone:?}");
}
