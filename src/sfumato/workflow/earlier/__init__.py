"""Earlier releases of the same data: kept readable, and combined with a new one."""
