"""What `scontrol show config` says of accounts, in the words of several versions."""

import pytest

from async_rollout.config.cluster import keeps_accounts

SETTINGS = """\
Configuration data as of 2026-01-01T00:00:00
AccountingStorageBackupHost = (null)
AccountingStorageEnforce = none
AccountingStorageHost   = localhost
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages
{}
AccountingStoreFlags    = (null)
JobCompType             = jobcomp/none
"""


@pytest.mark.parametrize(
    ("line", "keeps"),
    [
        ("AccountingStorageType   = accounting_storage/slurmdbd", True),
        ("AccountingStorageType   = accounting_storage/none", False),
        ("AccountingStorageType   = (null)", False),
        ("AccountingStorageType   = ", False),
        ("AccountingStorageType=", False),
        ("", False),
    ],
)
def test_accounts_are_kept_where_the_storage_is_a_database(line, keeps):
    assert keeps_accounts(SETTINGS.format(line)) is keeps
