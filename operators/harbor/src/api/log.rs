//! How much is logged. Every component has its own words for it.

use super::choice::choice;

choice! {
    /// How much Harbor logs.
    #[derive(Default)]
    LogLevel { Debug = "debug", #[default] Info = "info", Warning = "warning", Error = "error", Fatal = "fatal" }
}

choice! {
    /// How much Core logs.
    #[derive(Default)]
    CoreLogLevel { Debug = "debug", #[default] Info = "info", Warn = "warn", Error = "error" }
}

choice! {
    /// How much the exporter logs.
    #[derive(Default)]
    ExporterLogLevel { Debug = "debug", #[default] Info = "info", Warning = "warning", Error = "error", Panic = "panic" }
}

choice! {
    /// How much the registry logs.
    #[derive(Default)]
    RegistryLogLevel { Debug = "debug", #[default] Info = "info", Warning = "warning", Error = "error" }
}

choice! {
    /// How much the job service logs.
    #[derive(Default)]
    JobServiceLogLevel { Debug = "DEBUG", #[default] Info = "INFO", Warning = "WARNING", Error = "ERROR", Fatal = "FATAL" }
}

choice! {
    /// How much Notary and Trivy log.
    #[derive(Default)]
    NotaryLogLevel {
        Debug = "debug",
        #[default]
        Info = "info",
        Warning = "warning",
        Error = "error",
        Fatal = "fatal",
        Panic = "panic",
    }
}

impl LogLevel {
    /// In Core's words.
    pub const fn core(self) -> CoreLogLevel {
        match self {
            Self::Debug => CoreLogLevel::Debug,
            Self::Info => CoreLogLevel::Info,
            Self::Warning => CoreLogLevel::Warn,
            Self::Error | Self::Fatal => CoreLogLevel::Error,
        }
    }

    /// In the exporter's words.
    pub const fn exporter(self) -> ExporterLogLevel {
        match self {
            Self::Debug => ExporterLogLevel::Debug,
            Self::Info => ExporterLogLevel::Info,
            Self::Warning => ExporterLogLevel::Warning,
            Self::Error => ExporterLogLevel::Error,
            Self::Fatal => ExporterLogLevel::Panic,
        }
    }

    /// In the registry's words.
    pub const fn registry(self) -> RegistryLogLevel {
        match self {
            Self::Debug => RegistryLogLevel::Debug,
            Self::Info => RegistryLogLevel::Info,
            Self::Warning => RegistryLogLevel::Warning,
            Self::Error | Self::Fatal => RegistryLogLevel::Error,
        }
    }

    /// In the job service's words.
    pub const fn job_service(self) -> JobServiceLogLevel {
        match self {
            Self::Debug => JobServiceLogLevel::Debug,
            Self::Info => JobServiceLogLevel::Info,
            Self::Warning => JobServiceLogLevel::Warning,
            Self::Error => JobServiceLogLevel::Error,
            Self::Fatal => JobServiceLogLevel::Fatal,
        }
    }

    /// In Notary's and Trivy's words.
    pub const fn notary(self) -> NotaryLogLevel {
        match self {
            Self::Debug => NotaryLogLevel::Debug,
            Self::Info => NotaryLogLevel::Info,
            Self::Warning => NotaryLogLevel::Warning,
            Self::Error => NotaryLogLevel::Error,
            Self::Fatal => NotaryLogLevel::Fatal,
        }
    }
}
