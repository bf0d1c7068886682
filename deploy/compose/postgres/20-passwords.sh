# Lets owners and services log in, each with the password of its secret.
let_in() {
  psql --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 \
    --set=role="$1" --set=password="$(cat "/run/secrets/$2")" <<'SQL'
ALTER ROLE :"role" LOGIN PASSWORD :'password';
SQL
}
for schema in gateway learner registry; do
  let_in "$schema" "postgres-$schema"
  let_in "${schema}_${schema}_login" "postgres-$schema-login"
done
