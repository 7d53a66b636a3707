//! The body of a request.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tower::BoxError;

use crate::fence::SendCheck;

/// The body of a request, as the transport sends it.
///
/// The fence of a leader's write is checked when the connection has asked for the body: a request whose body
/// is missing is not executed, however long the connection took to open.
pub(super) struct RequestBody {
    body: Body,
    check: Option<SendCheck>,
}

impl RequestBody {
    pub(super) fn wrap(request: Request<Body>) -> Request<Self> {
        let check = request.extensions().get().cloned();
        request.map(|body| Self { body, check })
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(check) = &self.check {
            check.check()?;
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
