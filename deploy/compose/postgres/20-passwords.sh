# Lets owners and services log in, each with the password of its secret, which psql reads itself: the
# arguments of a process can be read by others.
let_in() {
  export PASSWORD_FILE="/run/secrets/$2"
  if [ ! -s "$PASSWORD_FILE" ]; then
    echo "$PASSWORD_FILE is missing or empty: start the container with its new secrets" >&2
    exit 1
  fi
  psql --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 \
    --set=role="$1" <<'SQL' || exit 1
\set password `cat "$PASSWORD_FILE"`
ALTER ROLE :"role" LOGIN PASSWORD :'password';
SQL
}
for schema in gateway learner registry; do
  let_in "$schema" "postgres-$schema"
  let_in "${schema}_${schema}_login" "postgres-$schema-login"
done
