//! Pond in memory, on a disk, with the lease, and with data files of its own encoding.
mod memory {
    use lakebed_testkit::{conformance::World, conformance_tests, pond::PondSubject};

    conformance_tests!(all, PondSubject::default(), World::memory());
}

mod disk {
    use lakebed_testkit::{conformance::World, conformance_tests, pond::PondSubject};

    conformance_tests!(healthy, PondSubject::default(), World::disk());
}

mod leased {
    use lakebed_testkit::{conformance::World, conformance_tests, pond::PondSubject};

    conformance_tests!(all, PondSubject { leased: true, native: false }, World::memory());
}

mod native {
    use lakebed_testkit::{conformance::World, conformance_tests, pond::PondSubject};

    conformance_tests!(all, PondSubject { leased: false, native: true }, World::memory());
}
