//! Exact linearizability analyzers over integer columns.

use pyo3::prelude::*;

/// The Python module `checker._kernel`.
#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
