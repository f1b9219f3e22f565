"""What Spur-Cloud makes of its environment."""

from __future__ import annotations

import dataclasses

import pytest

from spur.values.errors import OperatorFault
from spur_cloud.settings import SETTINGS, Settings, load_settings

DATABASE = "postgresql://cloud:secret@db.example/spur"


def test_settings_defaults_fill_what_is_not_set() -> None:
    """Somebody sets the database alone and starts it on one machine."""
    assert load_settings({"SPUR_DATABASE_URL": DATABASE}) == Settings(
        database_url=DATABASE,
        listen_address="127.0.0.1:8080",
        controller_addresses=("127.0.0.1:6816",),
    )


def test_settings_read_every_variable() -> None:
    """A site with three controllers sets everything; other variables are left alone."""
    environment = {
        "SPUR_DATABASE_URL": DATABASE,
        "SPUR_CLOUD_LISTEN": "[::]:80",
        "SPUR_CLOUD_CONTROLLERS": "c1:6816, c2:6816,c3:6816",
        "PATH": "/bin",
    }
    assert load_settings(environment) == Settings(
        database_url=DATABASE,
        listen_address="[::]:80",
        controller_addresses=("c1:6816", "c2:6816", "c3:6816"),
    )


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        (
            "SPUR_DATABASE_URL",
            "mysql://root:secret@h/d",
            "SPUR_DATABASE_URL: scheme 'mysql' is not PostgreSQL's; write postgresql://...",
        ),
        (
            "SPUR_DATABASE_URL",
            "postgresql://cloud:secret@db.example",
            "SPUR_DATABASE_URL: it names no database; write postgresql://USER@HOST/DATABASE",
        ),
        (
            "SPUR_CLOUD_LISTEN",
            "8080",
            "SPUR_CLOUD_LISTEN: '8080' is not an address; write HOST:PORT",
        ),
        (
            "SPUR_CLOUD_LISTEN",
            "localhost:65536",
            "SPUR_CLOUD_LISTEN: port '65536' is not a number from 1 to 65535",
        ),
        (
            "SPUR_CLOUD_CONTROLLERS",
            "c1:6816,c1:6816",
            "SPUR_CLOUD_CONTROLLERS: 'c1:6816,c1:6816' names an address twice; "
            "name each controller once",
        ),
        (
            "SPUR_CLOUD_LISTNE",
            "localhost:80",
            "SPUR_CLOUD_LISTNE is no setting; did you mean SPUR_CLOUD_LISTEN?",
        ),
    ],
)
def test_settings_refuse_a_bad_value_with_one_sentence(
    variable: str, text: str, sentence: str
) -> None:
    """One variable is wrong: the sentence says what is, and repeats no password."""
    with pytest.raises(OperatorFault) as caught:
        load_settings({"SPUR_DATABASE_URL": DATABASE, variable: text})
    assert str(caught.value) == f"spur-cloud was not started\n{sentence}"
    assert "secret" not in str(caught.value)


def test_settings_say_all_faults_at_once() -> None:
    """Nothing is set right: one start shows all there is to mend."""
    with pytest.raises(OperatorFault) as caught:
        load_settings({"SPUR_CLOUD_LISTEN": "x", "SPUR_CLOUD_CONTROLLERS": "y"})
    lines = str(caught.value).splitlines()[1:]
    assert [line.split(":")[0].split(" ")[0] for line in lines] == [
        "SPUR_DATABASE_URL",
        "SPUR_CLOUD_LISTEN",
        "SPUR_CLOUD_CONTROLLERS",
    ]


def test_settings_have_one_row_for_each_field() -> None:
    """Someone adds a field and forgets its variable, or the reverse."""
    fields = [field.name for field in dataclasses.fields(Settings)]
    assert [row.field for row in SETTINGS] == fields
    assert all(row.doc.endswith(".") and row.unit for row in SETTINGS)
