//! S3, Azure, Google and HTTP stores from the configuration and the stores' own variables.
//!
//! The variables the vendors' tools read (`AWS_…`, `AZURE_…`, `GOOGLE_…`) are the base; `store.…` keys win over them;
//! credentials come by reference only. A conditional create is asked for in each store's own way; whether the store
//! honours it is for [`probe`](super::probe) to find out.
use std::{collections::BTreeMap, str::FromStr, sync::Arc};

use lakebed_core::{Error, ErrorKind, Result};
use object_store::{
    ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey},
    http::HttpBuilder,
};

use crate::{
    config::Config,
    location::Scheme,
    secret::{Credentials, SecretRef},
};

type Environment = BTreeMap<String, String>;

/// Opens the store of `scheme` and `authority`; makes no request.
///
/// # Errors
/// [`ErrorKind::Invalid`] when settings are missing or contradict, [`ErrorKind::Unauthorized`] when a reference to
/// credentials leads nowhere.
pub(super) fn open(
    scheme: Scheme,
    authority: &str,
    config: &Config,
    environment: &Environment,
) -> Result<Arc<dyn ObjectStore>> {
    match scheme {
        Scheme::Memory => Err(Error::internal("a memory store is not opened over the network")),
        Scheme::S3 => s3(authority, config, environment),
        Scheme::Gs => gcs(authority, config, environment),
        Scheme::Abfss | Scheme::Az => azure(authority, config, environment),
        Scheme::Http | Scheme::Https => http(scheme, authority, config),
    }
}

fn s3(bucket: &str, config: &Config, environment: &Environment) -> Result<Arc<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in variables::<AmazonS3ConfigKey>(environment, "AWS_") {
        builder = builder.with_config(key, value);
    }
    builder = builder.with_bucket_name(bucket).with_retry(retries(config));
    builder = builder.with_client_options(client(config, "store.s3.allow_http"));
    if let Some(region) = config.get("store.s3.region") {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = config.get("store.s3.endpoint") {
        builder = builder.with_endpoint(endpoint);
    }
    if config.bool("store.s3.virtual_hosted") {
        builder = builder.with_virtual_hosted_style_request(true);
    }
    match config.secret("store.s3.credentials") {
        Some(SecretRef::None) => builder = builder.with_skip_signature(true),
        Some(reference) => {
            for (key, secret) in known::<AmazonS3ConfigKey>(&reference.fetch(environment)?)? {
                builder = builder.with_config(key, secret);
            }
        }
        None => (),
    }
    built("s3", bucket, builder.build())
}

fn azure(authority: &str, config: &Config, environment: &Environment) -> Result<Arc<dyn ObjectStore>> {
    let mut builder = MicrosoftAzureBuilder::new();
    for (key, value) in variables::<AzureConfigKey>(environment, "AZURE_") {
        builder = builder.with_config(key, value);
    }
    builder = builder.with_retry(retries(config)).with_client_options(client(config, "store.azure.allow_http"));
    let (container, host) = authority.split_once('@').unwrap_or((authority, ""));
    builder = builder.with_container_name(container);
    let account = host.split('.').next().filter(|it| !it.is_empty()).or_else(|| config.get("store.azure.account"));
    if let Some(account) = account {
        builder = builder.with_account(account);
    }
    if host.ends_with(".fabric.microsoft.com") {
        builder = builder.with_use_fabric_endpoint(true);
    }
    if let Some(endpoint) = config.get("store.azure.endpoint") {
        builder = builder.with_endpoint(endpoint.to_owned());
    }
    match config.secret("store.azure.credentials") {
        Some(SecretRef::None) => builder = builder.with_skip_signature(true),
        Some(reference) => {
            for (key, secret) in known::<AzureConfigKey>(&reference.fetch(environment)?)? {
                builder = builder.with_config(key, secret);
            }
        }
        None => (),
    }
    built("azure", container, builder.build())
}

fn gcs(bucket: &str, config: &Config, environment: &Environment) -> Result<Arc<dyn ObjectStore>> {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (key, value) in variables::<GoogleConfigKey>(environment, "GOOGLE_") {
        builder = builder.with_config(key, value);
    }
    builder = builder.with_bucket_name(bucket).with_retry(retries(config));
    builder = builder.with_client_options(client(config, "store.gcs.allow_http"));
    if let Some(endpoint) = config.get("store.gcs.endpoint") {
        builder = builder.with_base_url(endpoint);
    }
    match config.secret("store.gcs.credentials") {
        // Writes ask for a token even so, and must not wait for a metadata server that is not there.
        Some(SecretRef::None) => {
            let nobody = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
            builder = builder.with_skip_signature(true).with_credentials(Arc::new(nobody));
        }
        Some(reference) => {
            for (key, secret) in known::<GoogleConfigKey>(&reference.fetch(environment)?)? {
                builder = builder.with_config(key, secret);
            }
        }
        None => (),
    }
    built("gcs", bucket, builder.build())
}

fn http(scheme: Scheme, authority: &str, config: &Config) -> Result<Arc<dyn ObjectStore>> {
    let url = format!("{}://{authority}", scheme.name());
    let builder = HttpBuilder::new().with_url(url).with_retry(retries(config));
    built("http", authority, builder.with_client_options(client(config, "store.http.allow_http")).build())
}

/// Variables with `prefix` that the store's own configuration knows; others are somebody else's.
fn variables<K: FromStr>(environment: &Environment, prefix: &str) -> Vec<(K, String)> {
    let ours = environment.iter().filter(|(name, _)| name.starts_with(prefix));
    ours.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.clone()))).collect()
}

fn known<K: FromStr>(credentials: &Credentials) -> Result<Vec<(K, String)>> {
    let read = credentials.iter().map(|(name, secret)| {
        let key = name.parse().map_err(|_| {
            Error::new(ErrorKind::Unauthorized, format!("credentials: the store knows no `{}`", name.escape_debug()))
        })?;
        Ok((key, secret.expose().to_owned()))
    });
    read.collect()
}

fn client(config: &Config, allow_http: &'static str) -> ClientOptions {
    let options = ClientOptions::new().with_allow_http(config.bool(allow_http));
    match config.duration("store.timeout") {
        Some(limit) => options.with_timeout(limit),
        None => options,
    }
}

fn retries(config: &Config) -> RetryConfig {
    let times = config.get("store.retries").and_then(|it| it.parse().ok());
    RetryConfig { max_retries: times.unwrap_or(4), ..RetryConfig::default() }
}

fn built<S: ObjectStore>(kind: &str, name: &str, store: object_store::Result<S>) -> Result<Arc<dyn ObjectStore>> {
    match store {
        Ok(store) => Ok(Arc::new(store)),
        Err(err) => Err(Error::new(ErrorKind::Invalid, format!("{kind} store `{name}`: {err}"))
            .with_hint("`lakebed config list --show-origin` shows the settings in force")),
    }
}
