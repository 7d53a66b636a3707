//! A process that is assembled without a cluster.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_operator::{AssembleError, Lease, Operator, Settings};
use windlass_runtime::manager::Stop;
use windlass_testenv::eventually;

fn nowhere() -> Result<kube::Config> {
    Ok(kube::Config::new("http://127.0.0.1:9".parse()?))
}

async fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    ask.await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn health_and_metrics_are_served_at_every_address_until_the_stop() -> Result<()> {
    let one: SocketAddr = ([127, 0, 0, 1], 0).into();
    let two: SocketAddr = ([127, 0, 0, 2], 0).into();
    let settings = Settings { admin: [one, two].into(), ..Settings::default() };
    let process = Operator::new("quiet").assemble(nowhere()?, &settings)?;
    let addresses = process.admin().to_vec();
    assert_eq!(addresses.len(), 2);
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(process.run_until(stop));
    for address in addresses {
        for path in ["/healthz", "/readyz", "/metrics"] {
            eventually(format!("{path} at {address}"), || async {
                let answer = get(address, path).await?;
                if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
            })
            .await?;
        }
    }
    stopper.request();
    Ok(running.await??)
}

#[tokio::test]
async fn a_taken_port_and_an_unknown_operator_namespace_are_errors_before_anything_runs() -> Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let settings = Settings { admin: [taken.local_addr()?].into(), ..Settings::default() };
    let error = Operator::new("late").assemble(nowhere()?, &settings).unwrap_err();
    assert!(matches!(error, AssembleError::Port(_)), "{error}");

    let settings = Settings { election: Some(Lease::default()), ..Settings::default() };
    let error = Operator::new("homeless").assemble(nowhere()?, &settings).unwrap_err();
    assert!(matches!(error, AssembleError::Election(_)), "{error}");
    let settings = Settings { own_namespace: Some("home".into()), ..settings };
    assert!(Operator::new("housed").assemble(nowhere()?, &settings).is_ok());
    Ok(())
}
