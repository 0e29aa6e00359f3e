"""check_schema.py SCHEMA FILE...: whether each JSON line of the files is as the schema says."""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema) if hasattr(jsonschema, "Draft202012Validator") else None
validator = jsonschema.Draft7Validator(schema)
faults = lines = 0
for path in sys.argv[2:]:
    for line in open(path, encoding="utf-8"):
        lines += 1
        fault = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(line)))
        if fault:
            faults += 1
            print(f"FAILED: {path}: {fault.message[:300]}: {line[:300]}")
print(f"{lines} lines, {faults} are not as the schema says")
sys.exit(1 if faults or lines == 0 else 0)
