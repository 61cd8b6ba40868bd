//! The other end of a stream as a stranger would write it: tonic alone, none of our code.

use std::net::SocketAddr;

use cutline::protocol::frame::{Greeting, Hello};
use cutline::protocol::ids::ChannelId;
use cutline::wire::channel::{greeting_word, hello_word, read_greeting};
use cutline::wire::pb;
use cutline::wire::pb::channel_client::ChannelClient;
use cutline::wire::pb::channel_server::{Channel, ChannelServer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::node::LIMIT;

/// A sender.
pub(crate) struct Client {
    pub(crate) service: ChannelClient<tonic::transport::Channel>,
    words: Option<mpsc::Sender<pb::ToReceiver>>,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        Self {
            service: ChannelClient::new(endpoint.connect().await.unwrap()),
            words: None,
        }
    }

    /// Calls, and says nothing yet.
    pub(crate) async fn carry(&mut self) -> Streaming<pb::ToSender> {
        let (sender, words) = mpsc::channel(16);
        self.words = Some(sender);
        let carried = self.service.carry(ReceiverStream::new(words)).await;
        carried.unwrap().into_inner()
    }

    /// Calls and says hello.
    pub(crate) async fn open(
        &mut self,
        channel: ChannelId,
        hello: Hello,
    ) -> Streaming<pb::ToSender> {
        let words = self.carry().await;
        self.say(hello_word(channel, &hello)).await;
        words
    }

    pub(crate) async fn say(&self, word: pb::ToReceiver) {
        let words = self.words.as_ref().expect("after the call");
        // A receiver that has gone does not hear it.
        let _ = words.send(word).await;
    }
}

/// Reads the answer to a hello.
pub(crate) async fn greeting(words: &mut Streaming<pb::ToSender>) -> Greeting {
    let word = timeout(LIMIT, words.message()).await.expect("in time");
    read_greeting(word.unwrap().expect("an answer")).unwrap()
}

/// A stream as a foreign receiver has it: read only when the test reads it.
pub(crate) struct Carried {
    pub(crate) peer: SocketAddr,
    pub(crate) words: Streaming<pb::ToReceiver>,
    _answers: mpsc::Sender<Result<pb::ToSender, Status>>,
}

/// A receiver.
pub(crate) struct ForeignReceiver {
    pub(crate) address: String,
    carried: mpsc::Receiver<Carried>,
    serving: JoinHandle<()>,
}

struct Service(mpsc::Sender<Carried>);

#[tonic::async_trait]
impl Channel for Service {
    type CarryStream = ReceiverStream<Result<pb::ToSender, Status>>;

    async fn carry(
        &self,
        request: Request<Streaming<pb::ToReceiver>>,
    ) -> Result<Response<Self::CarryStream>, Status> {
        let peer = request.remote_addr().expect("over TCP");
        let (answers, stream) = mpsc::channel(16);
        let carried = Carried {
            peer,
            words: request.into_inner(),
            _answers: answers,
        };
        let _ = self.0.send(carried).await;
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

impl ForeignReceiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, carried) = mpsc::channel(16);
        let serving = tokio::spawn(async move {
            let served = Server::builder()
                .add_service(ChannelServer::new(Service(sender)))
                .serve_with_incoming(TcpListenerStream::new(listener));
            served.await.unwrap();
        });
        Self {
            address,
            carried,
            serving,
        }
    }

    /// Takes a stream, reads its hello, answers it, and reads no more.
    pub(crate) async fn welcome(&mut self, greeting: Greeting) -> Carried {
        let carried = timeout(LIMIT, self.carried.recv()).await;
        let mut carried = carried.expect("in time").expect("serving");
        carried.words.message().await.unwrap().expect("a hello");
        let answer = greeting_word(greeting);
        carried._answers.send(Ok(answer)).await.unwrap();
        carried
    }
}

impl Drop for ForeignReceiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes one connection on, until it is frozen: then both sockets stay open and nothing moves.
pub(crate) async fn freezing_proxy(target: String) -> (String, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let freeze = CancellationToken::new();
    let frozen = freeze.clone();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(target).await.unwrap();
        let passing = copy_bidirectional(&mut near, &mut far);
        frozen.run_until_cancelled(passing).await;
        std::future::pending::<()>().await;
    });
    (address, freeze)
}
