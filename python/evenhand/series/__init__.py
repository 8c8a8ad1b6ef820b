import importlib

_M = {
    "CampaignRecord": "evenhand.series.campaign",
    "HashType": "evenhand.series.campaign",
    "HookRun": "evenhand.series.campaign",
    "Point": "evenhand.series.campaign",
    "PointRecord": "evenhand.series.campaign",
    "PointState": "evenhand.series.campaign",
    "Repetition": "evenhand.series.campaign",
    "without_folders": "evenhand.series.folders",
    "read_host_facts": "evenhand.series.host_facts",
    "read_versions": "evenhand.series.host_facts",
    "RunTables": "evenhand.series.reading",
    "StoredRun": "evenhand.series.reading",
    "StoredSearch": "evenhand.series.reading",
    "StoredTrial": "evenhand.series.reading",
    "open_to_read": "evenhand.series.reading",
    "read_run": "evenhand.series.reading",
    "read_record": "evenhand.series.record",
    "SUFFIX": "evenhand.series.schema",
    "MeasuredSearch": "evenhand.series.store",
    "RunStore": "evenhand.series.store",
    "SearchWriter": "evenhand.series.store",
    "StorageError": "evenhand.series.store",
}


def __getattr__(n):
    if n in _M:
        return getattr(importlib.import_module(_M[n]), n)
    raise AttributeError(n)
