# The lines of FORMAT.md 4.11.4 as strings of C.
/^#### 4\.11\.4 /,/^### /{
  /^```/,/^```/{
    /^```/d
    s/"/\\"/g
    s/\\\([0-9a-f][0-9a-f]\)/\\x\1" "/g
    s/.*/    "&"/p
  }
}
