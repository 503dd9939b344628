//! A tiny HTTP server that speaks enough of S3, Azure Blob and Google Cloud Storage: ranged GET, HEAD, conditional PUT,
//! LIST with paging and delimiter, DELETE. It can be told to ignore conditions, as old servers and proxies do.
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    S3,
    Azure,
    Gcs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conditions {
    Honoured,
    Ignored,
}

/// Answers until it is dropped with its runtime.
#[derive(Debug, Clone)]
pub(crate) struct FakeCloud {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dialect: Dialect,
    conditions: Conditions,
    state: Mutex<State>,
    answered: tokio::sync::Notify,
}

impl Shared {
    /// Waits as long as nobody may know what became of this write.
    async fn wait(&self, request: &Request) {
        loop {
            let answered = self.answered.notified();
            let silent = self.state.lock().unwrap().silent.clone();
            if request.method != "PUT" || silent.is_none_or(|it| !request.path.contains(&it)) {
                return;
            }
            answered.await;
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// By key, without the bucket.
    objects: BTreeMap<String, Vec<u8>>,
    /// `GET key`, `LIST prefix`.
    requests: Vec<String>,
    /// Writes of keys that hold this are carried out and not answered.
    silent: Option<String>,
}

#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

/// Objects in a page of a listing: small, so that paging is exercised.
const PAGE: usize = 3;

impl FakeCloud {
    pub(crate) async fn start(dialect: Dialect, conditions: Conditions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, answered) = Default::default();
        let shared = Arc::new(Shared { dialect, conditions, state, answered });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn put(&self, key: &str, body: &[u8]) {
        self.shared.state.lock().unwrap().objects.insert(key.to_owned(), body.to_vec());
    }

    /// From now on writes of keys that hold `part` are carried out, but not answered; empty: all are answered, also those
    /// that wait.
    pub(crate) fn keep_silent(&self, part: &str) {
        self.shared.state.lock().unwrap().silent = Some(part.to_owned()).filter(|it| !it.is_empty());
        self.shared.answered.notify_waiters();
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().objects.keys().cloned().collect()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().requests.clone()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let head = request.method == "HEAD";
        let response = answer(&shared, &request);
        shared.wait(&request).await;
        let mut text = format!("HTTP/1.1 {} X\r\n", response.status);
        for (name, value) in &response.headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        let sized = response.headers.iter().any(|it| it.0 == "Content-Length");
        if !sized {
            write!(text, "Content-Length: {}\r\n", response.body.len()).unwrap();
        }
        text.push_str("\r\n");
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
        if !head && stream.write_all(&response.body).await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            break at;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|it| it.split_once(':'))
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |it| it.parse().unwrap());
    while buffer.len() < end + 4 + length {
        more(stream, buffer).await?;
    }
    let body = buffer[end + 4..end + 4 + length].to_vec();
    buffer.drain(..end + 4 + length);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter(|it| !it.is_empty()).map(|it| {
        let (name, value) = it.split_once('=').unwrap_or((it, ""));
        (decoded(name), decoded(&value.replace('+', " ")))
    });
    Some(Request { method, path: decoded(path), query: query.collect(), headers, body })
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 8192];
    let count = stream.read(&mut chunk).await.ok()?;
    buffer.extend_from_slice(&chunk[..count]);
    (count > 0).then_some(())
}

fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

fn answer(shared: &Shared, request: &Request) -> Response {
    let below = request.path.trim_start_matches('/');
    let key = below.split_once('/').map_or("", |it| it.1).to_owned();
    let mut state = shared.state.lock().unwrap();
    match request.method.as_str() {
        "GET" if key.is_empty() => {
            let prefix = request.query.get("prefix").cloned().unwrap_or_default();
            state.requests.push(format!("LIST {prefix}"));
            list(shared.dialect, &state, request, &prefix)
        }
        "GET" | "HEAD" => {
            state.requests.push(format!("{} {key}", request.method));
            read(&state, request, &key)
        }
        "PUT" => {
            state.requests.push(format!("PUT {key}"));
            write(shared, &mut state, request, key)
        }
        "DELETE" => {
            state.requests.push(format!("DELETE {key}"));
            state.objects.remove(&key);
            plain(204, "")
        }
        "POST" => delete_many(shared.dialect, &mut state, request),
        other => panic!("{other} is not spoken here"),
    }
}

fn plain(status: u16, body: &str) -> Response {
    Response { status, headers: vec![("ETag", "\"0\"".to_owned())], body: body.as_bytes().to_vec() }
}

fn etag(body: &[u8]) -> String {
    let sum = body.iter().fold(17_u64, |sum, it| sum.wrapping_mul(31).wrapping_add(u64::from(*it)));
    format!("\"{sum:x}\"")
}

fn read(state: &State, request: &Request, key: &str) -> Response {
    let Some(body) = state.objects.get(key) else { return plain(404, "<Error><Code>NoSuchKey</Code></Error>") };
    let mut headers = vec![
        ("ETag", etag(body)),
        ("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT".to_owned()),
        ("Content-Type", "application/octet-stream".to_owned()),
    ];
    let wanted = request.headers.get("range").or_else(|| request.headers.get("x-ms-range"));
    let Some(range) = wanted.and_then(|it| it.strip_prefix("bytes=")) else {
        headers.push(("Content-Length", body.len().to_string()));
        return Response { status: 200, headers, body: body.clone() };
    };
    let (from, to) = range.split_once('-').unwrap();
    let last = body.len() - 1;
    let (from, to) = match (from, to) {
        ("", count) => ((body.len()).saturating_sub(count.parse().unwrap()), last),
        (from, "") => (from.parse().unwrap(), last),
        (from, to) => (from.parse().unwrap(), to.parse::<usize>().unwrap().min(last)),
    };
    if from > last {
        return plain(416, "");
    }
    headers.push(("Content-Range", format!("bytes {from}-{to}/{}", body.len())));
    headers.push(("Content-Length", (to - from + 1).to_string()));
    Response { status: 206, headers, body: body[from..=to].to_vec() }
}

fn write(shared: &Shared, state: &mut State, request: &Request, key: String) -> Response {
    let condition = match shared.dialect {
        Dialect::Gcs => request.headers.get("x-goog-if-generation-match").map(|it| it == "0"),
        Dialect::S3 | Dialect::Azure => request.headers.get("if-none-match").map(|it| it == "*"),
    };
    if condition == Some(true) && shared.conditions == Conditions::Honoured && state.objects.contains_key(&key) {
        return match shared.dialect {
            Dialect::Azure => plain(409, "<Error><Code>BlobAlreadyExists</Code></Error>"),
            Dialect::S3 | Dialect::Gcs => plain(412, "<Error><Code>PreconditionFailed</Code></Error>"),
        };
    }
    let etag = etag(&request.body);
    state.objects.insert(key, request.body.clone());
    let status = if shared.dialect == Dialect::Azure { 201 } else { 200 };
    Response { status, headers: vec![("ETag", etag)], body: Vec::new() }
}

fn list(dialect: Dialect, state: &State, request: &Request, prefix: &str) -> Response {
    let after = ["continuation-token", "marker", "start-after"].iter().find_map(|it| request.query.get(*it));
    let inclusive = request.query.get("startFrom");
    let deep = !request.query.contains_key("delimiter");
    // One entry an object or, with a delimiter, one a folder.
    let mut entries: Vec<(String, Option<usize>)> = Vec::new();
    for (key, body) in state.objects.range(prefix.to_owned()..).take_while(|it| it.0.starts_with(prefix)) {
        let entry = match key[prefix.len()..].find('/') {
            Some(at) if !deep => (key[..=prefix.len() + at].to_owned(), None),
            _ => (key.clone(), Some(body.len())),
        };
        if entries.last() != Some(&entry) {
            entries.push(entry);
        }
    }
    entries.retain(|it| after.is_none_or(|after| it.0 > *after) && inclusive.is_none_or(|from| it.0 >= *from));
    let next = (entries.len() > PAGE).then(|| entries[PAGE - 1].0.clone());
    entries.truncate(PAGE);
    let body = match dialect {
        Dialect::Azure => azure_list(&entries, next.as_deref()),
        Dialect::S3 | Dialect::Gcs => s3_list(&entries, next.as_deref()),
    };
    Response { status: 200, headers: vec![("Content-Type", "application/xml".to_owned())], body: body.into_bytes() }
}

fn s3_list(entries: &[(String, Option<usize>)], next: Option<&str>) -> String {
    let mut out = "<?xml version=\"1.0\"?><ListBucketResult>".to_owned();
    for (key, bytes) in entries {
        match bytes {
            Some(bytes) => write!(
                out,
                "<Contents><Key>{key}</Key><Size>{bytes}</Size><LastModified>2026-11-30T12:00:00.000Z</LastModified>\
                 <ETag>\"1\"</ETag></Contents>"
            ),
            None => write!(out, "<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
        }
        .unwrap();
    }
    if let Some(next) = next {
        write!(out, "<NextContinuationToken>{next}</NextContinuationToken>").unwrap();
    }
    out + "</ListBucketResult>"
}

fn azure_list(entries: &[(String, Option<usize>)], next: Option<&str>) -> String {
    let mut out = "<?xml version=\"1.0\"?><EnumerationResults><Blobs>".to_owned();
    for (key, bytes) in entries {
        match bytes {
            Some(bytes) => write!(
                out,
                "<Blob><Name>{key}</Name><Properties><Last-Modified>Mon, 30 Nov 2026 12:00:00 GMT</Last-Modified>\
                 <Content-Length>{bytes}</Content-Length><Content-Type>x/y</Content-Type><Etag>1</Etag></Properties></Blob>"
            ),
            None => write!(out, "<BlobPrefix><Name>{key}</Name></BlobPrefix>"),
        }
        .unwrap();
    }
    write!(out, "</Blobs><NextMarker>{}</NextMarker></EnumerationResults>", next.unwrap_or_default()).unwrap();
    out
}

/// S3's and Azure's bulk deletes, whose bodies name the keys.
fn delete_many(dialect: Dialect, state: &mut State, request: &Request) -> Response {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    if dialect == Dialect::S3 {
        let keys = body.split("<Key>").skip(1).filter_map(|it| it.split("</Key>").next());
        let mut out = "<DeleteResult>".to_owned();
        for key in keys {
            state.requests.push(format!("DELETE {key}"));
            state.objects.remove(key);
            write!(out, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
        }
        return plain(200, &(out + "</DeleteResult>"));
    }
    let mut out = String::new();
    let lines = body.lines().filter_map(|it| it.strip_prefix("DELETE /")).filter_map(|it| it.split(' ').next());
    for (id, target) in lines.enumerate() {
        let target = decoded(target.split('?').next().unwrap());
        let key = target.trim_start_matches('/').split_once('/').map_or("", |it| it.1);
        state.requests.push(format!("DELETE {key}"));
        state.objects.remove(key);
        write!(
            out,
            "--b\r\nContent-Type: application/http\r\nContent-ID: {id}\r\n\r\nHTTP/1.1 202 Accepted\r\n\
             x-ms-request-id: 1\r\n\r\n\r\n"
        )
        .unwrap();
    }
    out += "--b--\r\n";
    let kind = ("Content-Type", "multipart/mixed; boundary=b".to_owned());
    Response { status: 202, headers: vec![kind], body: out.into_bytes() }
}
