//! tonic the usual way: a stream of one protobuf message each, through a channel of 1024.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{ClientStreamingService, Grpc, NamedService};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::{Mark, Plan, Sent, check, cpu_ns, fill, run};

const QUEUE_MESSAGES: usize = 1024;

#[derive(Clone, PartialEq, prost::Message)]
struct Numbered {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(bytes = "vec", tag = "2")]
    body: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Summary {
    #[prost(uint64, tag = "1")]
    cpu_ns: u64,
}

pub(crate) fn send(address: SocketAddr, plan: Plan) -> Sent {
    run(async move {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let mut client = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
        client.ready().await.unwrap();
        let (sender, queue) = mpsc::channel(QUEUE_MESSAGES);
        let began = Mark::now();
        tokio::spawn(async move {
            for number in 1..=plan.messages {
                let mut body = vec![0; plan.bytes];
                fill(&mut body, number);
                sender.send(Numbered { number, body }).await.unwrap();
            }
        });
        let codec = ProstCodec::<Numbered, Summary>::default();
        let path = http::uri::PathAndQuery::from_static("/plain.Plain/Take");
        let request = Request::new(ReceiverStream::new(queue));
        let summary = client.client_streaming(request, path, codec).await.unwrap();
        Sent {
            began,
            answer_ns: summary.into_inner().cpu_ns,
        }
    })
}

pub(crate) fn receive(listener: TcpListener, plan: Plan) {
    run(async move {
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        // What tonic itself does to a socket it accepts, where it does the accepting.
        let sockets = tokio_stream::StreamExt::map(TcpListenerStream::new(listener), |socket| {
            socket.inspect(|socket| socket.set_nodelay(true).unwrap())
        });
        let done = CancellationToken::new();
        let plain = Plain {
            plan,
            done: done.clone(),
        };
        let server = Server::builder().add_service(plain);
        let served = server.serve_with_incoming_shutdown(sockets, done.cancelled_owned());
        served.await.unwrap();
    });
}

/// The service, as tonic's generator would write it.
#[derive(Clone)]
struct Plain {
    plan: Plan,
    done: CancellationToken,
}

impl NamedService for Plain {
    const NAME: &'static str = "plain.Plain";
}

impl Service<http::Request<Body>> for Plain {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let plain = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Summary, Numbered>::default());
            Ok(grpc.client_streaming(plain, request).await)
        })
    }
}

impl ClientStreamingService<Numbered> for Plain {
    type Response = Summary;
    type Future = BoxFuture<Response<Summary>, Status>;

    fn call(&mut self, request: Request<Streaming<Numbered>>) -> Self::Future {
        let Self { plan, done } = self.clone();
        Box::pin(async move {
            let began = cpu_ns();
            let mut messages = request.into_inner();
            let mut number = 0;
            while let Some(message) = messages.message().await? {
                number += 1;
                assert_eq!(message.number, number, "out of order");
                check(&message.body, plan.bytes, number);
            }
            assert_eq!(number, plan.messages);
            done.cancel();
            let cpu_ns = cpu_ns() - began;
            Ok(Response::new(Summary { cpu_ns }))
        })
    }
}
