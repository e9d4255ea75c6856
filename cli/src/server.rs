//! A server from its configuration to its end: opens the store, binds, prints where, serves, and drains on a signal.

mod ack_write_failures;
mod banner;
mod cluster;
mod mirror;
mod projectors;
#[cfg(feature = "otlp")]
mod telemetry;
mod topics;

use crate::config::Config;
use crate::file_limit;
use crate::output::Format;
use crate::signals;
use crate::{jwks, store};
use anyhow::Context;
use prombus::{Bus, BusOptions, Clock, Limits, SystemClock};
use prombus_gateway::auth::Authenticator;
use prombus_gateway::{Gateway, GatewayOptions, NodeLinks, Server, Tls};
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often the key set is checked for expiry.
const KEYS_LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Serves until a signal, with `beside` running as long as the server does.
pub(crate) fn run<F>(
    config: &Config,
    format: Format,
    beside: impl FnOnce(Bus) -> F,
) -> anyhow::Result<ExitCode>
where
    F: Future<Output = ()> + Send + 'static,
{
    file_limit::raise();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let exit_code = runtime.block_on(async {
        let store = store::open(&config.store).await?;
        if let Some(cause) = store.status().failed {
            tracing::error!(%cause, "the store takes no writes; it can be read, and takes them once the disk does");
        }
        let bus = Bus::open(store, bus_options(config))?;
        topics::declare(&bus, config).await?;
        #[cfg(feature = "otlp")]
        let (spans, exporter) = telemetry::start(&config.telemetry)?;
        let options = GatewayOptions {
            #[cfg(feature = "otlp")]
            spans,
            ..gateway_options(config)
        };
        let gateway = Gateway::new(bus.clone(), authenticator(config).await?, options)?;
        let tls = config.tls.clone().map(Tls::load).transpose()?;
        let links = NodeLinks::new(tls.clone());
        let server = Server::bind(gateway.clone(), &config.listen).await.context(
            "another server may be running there: stop it, or choose another address with --listen",
        )?;
        let server = match tls {
            Some(tls) => server.with_tls(tls),
            None => server,
        };
        cluster::introduce(config, &server.addresses()?, links, &bus);
        let signals = signals::listen().context("cannot listen for signals")?;
        let projectors = projectors::start(&bus, config.projectors)?;
        let mirror = mirror::start(&bus, &config.store)?;
        banner::print(config, &server.addresses()?, &bus, format);
        let beside = tokio::spawn(beside(bus.clone()));
        let ack_write_failures = tokio::spawn(ack_write_failures::log_changes(bus.watch_unwritten_groups()));
        let exit_code = serve_until_signal(signals, &gateway, &bus, server).await;
        #[cfg(feature = "otlp")]
        if let Some(exporter) = exporter {
            exporter.stop().await;
        }
        beside.abort();
        ack_write_failures.abort();
        drop(projectors);
        if let Some(mirror) = mirror {
            mirror.abort();
        }
        exit_code
    });
    // Blocking reads of a disk that hangs are not waited for.
    runtime.shutdown_background();
    exit_code
}

/// Serves, drains at the first signal, and gives up waiting at the second.
async fn serve_until_signal(
    mut signals: signals::Signals,
    gateway: &Arc<Gateway>,
    bus: &Bus,
    server: Server,
) -> anyhow::Result<ExitCode> {
    let serving = tokio::spawn(server.serve());
    signals.next().await;
    tracing::info!("draining: no new work is accepted, work in progress is finished");
    let draining = async {
        gateway.drain();
        // It ends when connections have wound down; a panic in it was reported where it happened.
        let _ = serving.await;
        bus.close().await.context("the store could not be closed")
    };
    tokio::select! {
        closed = draining => {
            closed?;
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        () = signals.next() => {
            tracing::warn!("stopped at once; the log is safe, the latest acknowledgements may be redelivered");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn bus_options(config: &Config) -> BusOptions {
    BusOptions {
        limits: Limits {
            max_payload_bytes: config.limits.max_payload_bytes,
            ..Limits::default()
        },
        auto_create_topics: config.auto_create_topics,
        subscription_bytes: config.limits.subscription_bytes,
        group_bytes: config.limits.group_bytes,
        delivery_bytes: config.limits.delivery_bytes,
        max_lost_attempts: config.limits.max_lost_attempts,
        max_undo_settled: config.limits.max_undo_settled,
        max_schedules: config.limits.max_schedules,
        topic_defaults: config
            .topics
            .iter()
            .map(|topic| (topic.name.clone(), topic.config()))
            .collect(),
        ..BusOptions::default()
    }
}

fn gateway_options(config: &Config) -> GatewayOptions {
    GatewayOptions {
        limits: config.limits,
        topic_rates: config
            .topics
            .iter()
            .filter_map(|topic| Some((topic.name.clone(), topic.publish?)))
            .collect(),
        index_headers: config
            .topics
            .iter()
            .filter(|topic| !topic.index_headers.is_empty())
            .map(|topic| (topic.name.clone(), topic.index_headers.clone()))
            .collect(),
        cors_origins: config.cors_origins.clone(),
        allowed_hosts: config.allowed_hosts.clone(),
        max_connections: config.max_connections,
        drain_timeout_ms: config.drain_timeout_ms,
        ..GatewayOptions::default()
    }
}

/// The authenticator, with a task that keeps its keys fresh.
async fn authenticator(config: &Config) -> anyhow::Result<Authenticator> {
    let authenticator = config.auth.authenticator(jwks::at)?;
    if let Err(error) = authenticator.refresh(SystemClock.now_ms()).await {
        tracing::warn!(%error, "every token is rejected until the keys can be loaded");
    }
    let refreshed = authenticator.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(KEYS_LOOK_INTERVAL).await;
            if let Err(error) = refreshed.refresh_if_due(SystemClock.now_ms()).await {
                tracing::warn!(%error, "the previous keys stay in use");
            }
        }
    });
    Ok(authenticator)
}
