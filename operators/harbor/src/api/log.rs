//! Log levels. Each component has its own names for them.

use super::choice::choice;

choice! {
    /// Log level of a Harbor.
    #[derive(Default)]
    LogLevel { Debug = "debug", #[default] Info = "info", Warning = "warning", Error = "error", Fatal = "fatal" }
}

choice! {
    /// Log level of Core.
    #[derive(Default)]
    CoreLogLevel { Debug = "debug", #[default] Info = "info", Warn = "warn", Error = "error" }
}

choice! {
    /// Log level of the exporter.
    #[derive(Default)]
    ExporterLogLevel { Debug = "debug", #[default] Info = "info", Warning = "warning", Error = "error", Panic = "panic" }
}

choice! {
    /// Log level of the registry.
    #[derive(Default)]
    RegistryLogLevel { Debug = "debug", #[default] Info = "info", Warning = "warning", Error = "error" }
}

choice! {
    /// Log level of JobService.
    #[derive(Default)]
    JobServiceLogLevel { Debug = "DEBUG", #[default] Info = "INFO", Warning = "WARNING", Error = "ERROR", Fatal = "FATAL" }
}

choice! {
    /// Log level of Notary and Trivy.
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
    /// Returns the corresponding level of Core.
    pub const fn core(self) -> CoreLogLevel {
        match self {
            Self::Debug => CoreLogLevel::Debug,
            Self::Info => CoreLogLevel::Info,
            Self::Warning => CoreLogLevel::Warn,
            Self::Error | Self::Fatal => CoreLogLevel::Error,
        }
    }

    /// Returns the corresponding level of the exporter.
    pub const fn exporter(self) -> ExporterLogLevel {
        match self {
            Self::Debug => ExporterLogLevel::Debug,
            Self::Info => ExporterLogLevel::Info,
            Self::Warning => ExporterLogLevel::Warning,
            Self::Error => ExporterLogLevel::Error,
            Self::Fatal => ExporterLogLevel::Panic,
        }
    }

    /// Returns the corresponding level of the registry.
    pub const fn registry(self) -> RegistryLogLevel {
        match self {
            Self::Debug => RegistryLogLevel::Debug,
            Self::Info => RegistryLogLevel::Info,
            Self::Warning => RegistryLogLevel::Warning,
            Self::Error | Self::Fatal => RegistryLogLevel::Error,
        }
    }

    /// Returns the corresponding level of JobService.
    pub const fn job_service(self) -> JobServiceLogLevel {
        match self {
            Self::Debug => JobServiceLogLevel::Debug,
            Self::Info => JobServiceLogLevel::Info,
            Self::Warning => JobServiceLogLevel::Warning,
            Self::Error => JobServiceLogLevel::Error,
            Self::Fatal => JobServiceLogLevel::Fatal,
        }
    }

    /// Returns the corresponding level of Notary and Trivy.
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
